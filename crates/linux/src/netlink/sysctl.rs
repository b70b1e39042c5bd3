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

/// The settings of a link that are not those of a new link, by their paths below `/proc/sys`.
pub(super) async fn of_link(
    namespace: &Namespace,
    link: &str,
) -> io::Result<BTreeMap<String, String>> {
    let link = link.to_owned();
    let read = move || {
        let mut settings = BTreeMap::new();
        for family in ["net/ipv4/conf", "net/ipv6/conf"] {
            let root = PathBuf::from("/proc/sys").join(family);
            // A kernel without the family has no settings of it.
            let Ok(entries) = fs::read_dir(root.join(&link)) else {
                continue;
            };
            for entry in entries.filter_map(Result::ok) {
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                    continue;
                };
                // Some can only be written, and some are secrets that were never set.
                let text = |of: &str| fs::read_to_string(root.join(of).join(&name)).ok();
                let (Some(own), Some(fresh)) = (text(&link), text("default")) else {
                    continue;
                };
                // The MTU of IPv6 follows that of the link, which is no setting.
                if own != fresh && name != "mtu" {
                    let path = format!("{family}/{link}/{name}");
                    settings.insert(path, own.trim().to_owned());
                }
            }
        }
        settings
    };
    namespace.run(read).await
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
