//! The control plane: watch → snapshot → compile → publish → status. It decides nothing: the compiler does.
//!
//! One loop for the whole cluster. Watches fill stores; a change marks them dirty; one debounced pass takes a snapshot,
//! compiles it and writes what differs. Losing the operator changes nothing on any node.

mod publish;
mod resource;
mod run;
mod snapshot;
mod status_writer;
mod watch;

pub use run::{Error, run};

/// Who we are to the API server: the owner of every field we write.
const FIELD_MANAGER: &str = "selvedge";
