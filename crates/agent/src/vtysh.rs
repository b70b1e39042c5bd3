//! FRR's own shell: the way in and out of its configuration.

use std::io;

use tokio::process::Command;

use crate::daemons::INSTANCE;

/// How many commands go to one vtysh. The kernel limits the length of an argument list.
const CHUNK: usize = 2000;

/// What FRR says while one daemon has not heard yet what another, or the kernel, has already done.
const PASSING: [&str; 2] = [
    "Please unconfigure l3vni",
    "Only inactive VRFs can be deleted",
];

/// Why FRR did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shell could not be started.
    #[error("failed to run vtysh")]
    Run(#[source] io::Error),
    /// FRR refused a line.
    #[error("FRR refused: {message}")]
    Refused {
        /// What it said, which names the line.
        message: String,
    },
}

impl Error {
    /// Whether the same line may be taken a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Refused { message } => PASSING.iter().any(|text| message.contains(text)),
        }
    }
}

/// The running configuration.
pub(crate) async fn running_config() -> Result<String, Error> {
    vtysh(&["show running-config".to_owned()]).await
}

/// Types these commands, in order, and stops at the first that is refused.
pub(crate) async fn commands(commands: &[String]) -> Result<(), Error> {
    for chunk in chunks(commands) {
        vtysh(&chunk).await?;
    }
    Ok(())
}

/// Commands in portions that fit one argument list, each cut where no block is open.
fn chunks(commands: &[String]) -> Vec<Vec<String>> {
    let mut chunks: Vec<Vec<String>> = Vec::new();
    let mut open = 0_usize;
    for command in commands {
        let entered = chunks
            .last()
            .is_some_and(|chunk| chunk.len() >= CHUNK && open == 0);
        if chunks.is_empty() || entered {
            chunks.push(if chunks.is_empty() {
                Vec::new()
            } else {
                vec!["configure terminal".to_owned()]
            });
        }
        match command.as_str() {
            "exit" => open = open.saturating_sub(1),
            block if is_block(block) => open += 1,
            _ => {}
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(command.clone());
        }
    }
    chunks
}

/// Whether a line enters a block, which an `exit` leaves.
fn is_block(line: &str) -> bool {
    let blocks = [
        "router ",
        "address-family ",
        "vrf ",
        "route-map ",
        "bfd",
        "profile ",
        "peer ",
    ];
    blocks.iter().any(|block| line.starts_with(block)) || line.starts_with("vni ")
}

async fn vtysh(commands: &[String]) -> Result<String, Error> {
    let mut shell = Command::new("vtysh");
    shell.args(["-N", INSTANCE]);
    for command in commands {
        shell.arg("-c").arg(command);
    }
    let output = shell.output().await.map_err(Error::Run)?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::Refused {
        message: format!("{} {}", stdout.trim(), stderr.trim())
            .trim()
            .to_owned(),
    })
}
