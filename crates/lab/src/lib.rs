//! A real Kubernetes control plane and a real EVPN fabric on one machine, from real parts.
//!
//! [`parts`] gets what is needed, [`control_plane`] runs etcd and the Kubernetes servers, [`fabric`] runs leaves, nodes
//! and workloads with the kernel's own VRFs and VXLANs and with FRR. Where this machine's kernel cannot do that, a
//! user-mode-Linux [`guest`] does; [`host`] is the trait behind which both are the same.
//!
//! Everything started here ends with the value that stands for it, and with the process at the latest.

pub mod control_plane;
pub mod fabric;
pub mod guest;
pub mod host;
pub mod namespace;
pub mod parts;
mod ping;
pub mod process;
mod report;
mod scratch;
pub mod space;
pub mod topology;

pub use ping::Ping;

/// Receives progress messages of long steps, one line at a time.
pub type Progress<'a> = &'a dyn Fn(&str);
