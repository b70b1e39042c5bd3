//! The command line.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use api::value::Seconds;
use clap::{
    Args as Flags, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Selvedge compiles declared intents into one exact Linux and FRR configuration for every node.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 no errors; 1 errors in the input, or nothing found; 2 wrong usage, or input or output failed."
)]
pub(crate) struct Args {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A usage error, with what to do where a file is named without its flag.
pub(crate) fn explained(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_file = ["yaml", "yml", "json"].iter().any(|end| {
        let own = Path::new(argument).extension();
        own.is_some_and(|own| own == *end)
    });
    if error.kind() == ErrorKind::UnknownArgument && is_file {
        let tip = format!("begin each file with -f: -f {argument}").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compiles a shipped example and shows the result; needs no cluster and no root
    Demo,
    /// Prints the custom resource definitions of every kind
    Crds(Crds),
    /// Checks manifests: schema, rules, and references between objects
    Validate(Validate),
    /// Compiles manifests and prints the result
    Compile(Compile),
    /// Prints the exact frr.conf or kernel objects of a node, or of all nodes
    Render(Render),
    /// Shows what would change on which nodes between two sets of manifests
    Plan(Plan),
    /// Shows which fields a prefix, VRF, VLAN, VNI or interface comes from
    Explain(Ask),
    /// Shows why something is not configured on a node
    WhyNot(Ask),
    /// Shows which attachments and services reach which attachments and Destinations
    Reach(Reach),
    /// Shows on which nodes a VLAN, VRF, VNI, address or object is
    Where(Where),
    /// Shows address pools: their size, what is used, what is free, and by which objects
    Ipam(Ipam),
    /// Shows the state of a cluster: the newest revision, its nodes, and which objects are not ready
    Status(Status),
    /// Shows and controls the rollout of the newest revision
    #[command(subcommand)]
    Rollout(Rollout),
    /// Acts on single nodes
    #[command(subcommand)]
    Node(Node),
    /// Runs the control plane
    Operator(Operator),
    /// Runs on a node: applies the node's own NodeNetworkConfig to kernel and FRR
    Agent(Box<Agent>),
    /// Prints the completions of a shell
    Completions(Completions),
    /// Writes the man pages
    Man(Man),
    /// Prints the versions of Selvedge, of the node contract and of FRR
    Version,
}

/// How much is shown.
#[derive(Clone, Debug, Default, Flags)]
pub(crate) struct Screen {
    /// Shows everything: nothing is folded, grouped or left out
    #[arg(long)]
    pub(crate) all: bool,
    /// Does not shorten or wrap lines to the width of the terminal
    #[arg(long)]
    pub(crate) wide: bool,
    #[command(flatten)]
    pub(crate) paging: Paging,
}

/// What happens to output that is longer than the terminal.
#[derive(Clone, Debug, Default, Flags)]
pub(crate) struct Paging {
    /// Does not open a pager where the output is longer than the terminal
    #[arg(long)]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Flags)]
pub(crate) struct Crds {
    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, Flags)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Flags)]
pub(crate) struct Man {
    /// Directory for one page of each command [default: the page of selvedge itself to standard output]
    #[arg(short = 'd', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Flags)]
pub(crate) struct Reach {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Compares with these manifests: file, directory or - for standard input; may be given many times
    #[arg(long = "to", value_name = "PATH")]
    pub(crate) to: Vec<PathBuf>,
    /// Only this node [default: all nodes]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

#[derive(Debug, Flags)]
pub(crate) struct Where {
    #[command(flatten)]
    pub(crate) input: Input,
    /// A prefix or address, a name, "vrf NAME", "vni NUMBER", "vlan NUMBER", "interface NAME" or Kind/name
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

#[derive(Debug, Flags)]
pub(crate) struct Ipam {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Only the pools of this Network or Underlay, or with this prefix or address
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) screen: Screen,
}

/// Where manifests come from.
#[derive(Debug, Flags)]
pub(crate) struct Input {
    /// File, directory (searched for *.yaml, *.yml, *.json) or - for standard input; may be given many times
    #[arg(
        short = 'f',
        long = "file",
        required_unless_present_any = ["context", "kubeconfig"],
        value_name = "PATH"
    )]
    pub(crate) paths: Vec<PathBuf>,
    /// Reads the objects of the cluster of this context; files are applied to it
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Reads the objects of the cluster of this kubeconfig file; files are applied to it
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Flags)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Treats warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) screen: Screen,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Flags)]
pub(crate) struct Compile {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) screen: Screen,
    /// Which part of the result
    #[arg(long, default_value = "all")]
    pub(crate) what: What,
    /// Only what concerns this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Flags)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Manifests after the change: file, directory or - for standard input; may be given many times. Where they are compared with a
    /// cluster, those that are changed are enough
    #[arg(long = "to", required = true, value_name = "PATH")]
    pub(crate) to: Vec<PathBuf>,
    /// Ends with exit code 2 where something changes, 0 where nothing does, 1 on errors
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
    /// Saves the plan as JSON in this file; selvedge rollout approve --plan reads it
    #[arg(long, value_name = "PATH")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) screen: Screen,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Flags)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The node
    #[arg(long, value_name = "NAME", required_unless_present = "all")]
    pub(crate) node: Option<String>,
    /// All nodes, each to files of its own
    #[arg(long, requires = "directory", conflicts_with_all = ["node", "what", "domain"])]
    pub(crate) all: bool,
    /// Directory for the files of all nodes: NODE/frr.conf, NODE/linux-router.txt, NODE/linux-host.txt, and NODE/frr-host.conf where an
    /// FRRConfiguration selects the node
    #[arg(short = 'd', long, value_name = "DIR", requires = "all")]
    pub(crate) directory: Option<PathBuf>,
    /// frr.conf, or the objects of the kernel
    #[arg(long, default_value = "frr")]
    pub(crate) what: Rendering,
    /// Routing domain of the node
    #[arg(long, default_value = "router")]
    pub(crate) domain: Domain,
    /// FRR version to write for, such as 10.3 [default: what the node reports, else the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) frr_version: Option<String>,
    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, Flags)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The node [default: all nodes; those with the same answer are grouped]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// A prefix or address, a name, "vrf NAME", "vni NUMBER", "vlan NUMBER", "interface NAME", "table NUMBER", "route-target N:N", or
    /// Kind/name (short kinds such as l2a/NAME work too); explain also takes a line of frr.conf, and why-not "from A to B"
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) thing: Vec<String>,
    #[command(flatten)]
    pub(crate) screen: Screen,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
}

/// How the cluster is reached.
#[derive(Clone, Debug, Flags)]
pub(crate) struct Cluster {
    /// Kubeconfig file [default: in a pod the pod's own account, else $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Follows the rollout and ends with it: exit code 0 if it is complete, 1 if it has failed or waits for an approval
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Shows all nodes and objects
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, default_value = "table", conflicts_with = "watch")]
    pub(crate) output: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Rollout {
    /// Shows the progress of the newest revision, and which nodes it waits for
    Status(RolloutStatus),
    /// Pauses the rollout: no further node gets a new config
    Pause(Cluster),
    /// Resumes a paused rollout
    Resume(Cluster),
    /// Tries a failed revision again
    Retry(Cluster),
    /// Approves the removals of a revision
    Approve(Approve),
    /// Lists the revisions that are kept, the newest first
    History(History),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Node {
    /// Frees the addresses of a machine whose Node was deleted: it must be switched off or cleaned up
    Forget(Forget),
}

#[derive(Debug, Flags)]
pub(crate) struct Forget {
    /// Name of the node
    #[arg(value_name = "NAME")]
    pub(crate) node: String,
    /// Also if the agent of the machine still answers
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

#[derive(Debug, Flags)]
pub(crate) struct RolloutStatus {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Follows the rollout and ends with it: exit code 0 if it is complete, 1 if it has failed or waits for an approval
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Names all nodes
    #[arg(long)]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, default_value = "table", conflicts_with = "watch")]
    pub(crate) output: Format,
}

#[derive(Debug, Flags)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Name of the revision; it must be the newest [default: the newest]
    #[arg(value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// Approves the revision of a plan that selvedge plan --save has written; it must be the newest
    #[arg(long, value_name = "PATH", conflicts_with = "revision")]
    pub(crate) plan: Option<PathBuf>,
}

#[derive(Debug, Flags)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Output format
    #[arg(short, long, default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Flags)]
pub(crate) struct Operator {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// How long an operator that does not answer keeps the Lease; another one takes over after that
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) lease_duration: Seconds,
    /// How long the leading operator continues to write when it cannot renew the Lease
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) renew_deadline: Seconds,
    /// Time between two attempts to renew or to get the Lease
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) retry_period: Seconds,
    /// Address and port of /metrics, /healthz, /readyz and /debug/snapshot, or "none"
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9718")]
    pub(crate) listen: Listen,
    /// Address and port of /metrics alone, for Prometheus, such as [::]:9719, or "none"
    #[arg(long, value_name = "ADDRESS", default_value = "none")]
    pub(crate) metrics_listen: Listen,
    /// Gives claims addresses of InClusterIPPools, for clusters without Cluster API's in-cluster IPAM provider
    #[arg(long)]
    pub(crate) in_cluster_ipam: bool,
}

#[derive(Debug, Flags)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Agent {
    #[command(subcommand)]
    pub(crate) command: Option<AgentCommand>,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Name of the node
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Applies the NodeNetworkConfig in this file once, without a cluster, and exits when it is confirmed or rolled back
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Applies the config that these manifests compile into, and keeps it, without a cluster: file or directory; may be given many times
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub(crate) manifests: Vec<PathBuf>,
    /// Prints what applying the file would change, and changes nothing
    #[arg(long, requires = "config")]
    pub(crate) dry_run: bool,
    /// Reports unmanaged lines in FRR's configuration, instead of removing them
    #[arg(long)]
    pub(crate) report_unmanaged_lines: bool,
    /// Namespace of Secrets whose reference names none
    #[arg(
        long,
        env = "POD_NAMESPACE",
        value_name = "NAME",
        default_value = "selvedge-system"
    )]
    pub(crate) secrets_namespace: String,
    #[command(flatten)]
    pub(crate) account: Account,
    /// Key of a taint that is removed from the Node when the first config is confirmed; may be given many times
    #[arg(
        long = "startup-taint",
        value_name = "KEY",
        default_value = "selvedge.dev/not-ready"
    )]
    pub(crate) startup_taints: Vec<String>,
    /// Address and port of /metrics, /healthz and /readyz, or "none"
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9717")]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) places: Places,
}

/// The account that an agent works with.
#[derive(Debug, Flags)]
pub(crate) struct Account {
    /// Requests a token of the ServiceAccount selvedge-agent-NODE, and uses it instead of the account of the process
    #[arg(long)]
    pub(crate) own_account: bool,
}

/// Where metrics and health are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listen(pub(crate) Option<SocketAddr>);

impl FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let parsed = text.parse().map(|address| Self(Some(address)));
        parsed.map_err(|_invalid| {
            "expected an IP address with a port, such as 127.0.0.1:9717, or none".to_owned()
        })
    }
}

/// Where things are on a node.
#[derive(Debug, Flags)]
pub(crate) struct Places {
    /// Directory of FRR's daemons
    #[arg(long, value_name = "PATH", default_value = "/usr/lib/frr")]
    pub(crate) frr_daemons: PathBuf,
    /// Directory of the journal; it must survive a reboot
    #[arg(long, value_name = "PATH", default_value = "/var/lib/selvedge")]
    pub(crate) state_directory: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Restores the node: stops FRR, returns NICs to the host and removes everything that Selvedge created
    Cleanup(Cleanup),
}

#[derive(Debug, Flags)]
pub(crate) struct Cleanup {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Name of the node: reports to the cluster that its addresses are released [default: nothing is reported]
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) account: Account,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Table,
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// Part of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Low-level objects: hand-written ones and those generated from intents
    Lowlevel,
    /// The revision: everything that changes forwarding, with its fingerprint
    Revision,
    /// The config of each node
    Nodes,
    /// Objects for other programs of the cluster: MetalLB, Coil, Calico
    Platform,
    /// The status of each intent
    Status,
    /// Problems
    Problems,
    /// Everything
    All,
}

/// What to render.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rendering {
    /// The configuration of FRR
    Frr,
    /// The objects of the kernel
    Linux,
}

/// A routing domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Domain {
    /// The router's namespace
    Router,
    /// The host's namespace
    Host,
}
