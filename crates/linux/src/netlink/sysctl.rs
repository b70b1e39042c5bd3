//! Kernel settings, read and written inside their namespace.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use super::namespace::Namespace;
use crate::sysctl::SysctlId;

/// Reads settings. One that this kernel does not have is `None`.
pub(super) async fn read(
    namespace: &Namespace,
    ids: Vec<SysctlId>,
) -> io::Result<BTreeMap<SysctlId, Option<String>>> {
    namespace
        .run(move || {
            ids.into_iter()
                .map(|id| match fs::read_to_string(path(&id)) {
                    Ok(text) => Ok((id, Some(text.trim().to_owned()))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((id, None)),
                    Err(error) => Err(error),
                })
                .collect()
        })
        .await?
}

/// Writes a setting. One that this kernel does not have is passed over: the next observation says so.
pub(super) async fn write(namespace: &Namespace, id: &SysctlId, value: &str) -> io::Result<()> {
    let (path, value) = (path(id), value.to_owned());
    let written = namespace.run(move || fs::write(path, value)).await?;
    match written {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

fn path(id: &SysctlId) -> PathBuf {
    PathBuf::from("/proc/sys").join(&id.path)
}
