//! Objects of other programs that an object needs and that are not there: no intent is ready without them.

use std::{fmt, sync::Arc};

use crate::{
    memo::{Input, Part, Parts, Query},
    snapshot::{Kind, ObjectRef, Role},
    view::View,
};

/// An object of another program that is not there as it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absent {
    /// Kind, namespace and name.
    pub object: String,
    /// Why it is not there.
    pub why: Why,
}

/// Why an object of another program is not there as it must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The API server does not serve its kind, of this group and version.
    NotServed(&'static str),
    /// Objects of its kind cannot be watched, for this reason: whether it is there is not known, and it is not written.
    NotWatched(String),
    /// Another one has its name.
    NameTaken,
    /// The API server does not take it.
    Refused(String),
    /// One of this name is being deleted.
    Terminating,
    /// It is about to be written.
    Pending,
}

impl Why {
    /// One word for it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotServed(_) => "KindNotServed",
            Self::NotWatched(_) => "KindNotWatched",
            Self::NameTaken => "NameTaken",
            Self::Refused(_) => "Refused",
            Self::Terminating => "Terminating",
            Self::Pending => "Pending",
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        match &self.why {
            Why::NotServed(api_version) => write!(
                f,
                "{object} cannot be created: the API server does not serve this kind of {api_version}; install the program, or choose another in \
                 Settings.platform"
            ),
            Why::NotWatched(reason) => write!(
                f,
                "cannot determine whether {object} exists: its kind cannot be watched: {reason}"
            ),
            Why::NameTaken => write!(
                f,
                "{object} exists and was not created by Selvedge; rename or delete it"
            ),
            Why::Refused(message) => write!(f, "the API server rejects {object}: {message}"),
            Why::Terminating => write!(
                f,
                "{object} is being deleted, and is created again after that"
            ),
            Why::Pending => write!(f, "{object} does not exist yet"),
        }
    }
}

/// What an object lacks on the platform. Set from outside: whether an object of another program is there is seen at the API server.
pub(crate) struct AbsentFor;
impl Input for AbsentFor {
    type Key = ObjectRef;
    type Value = Arc<Vec<Absent>>;
    fn differing(before: &Self::Value, now: &Self::Value) -> Parts {
        [before != now, false, false]
    }
}

struct AbsentPart;
impl Part for AbsentPart {
    type Of = AbsentFor;
    type Value = Arc<Vec<Absent>>;
    const PART: usize = 0;
    fn of(absent: &Arc<Vec<Absent>>) -> Arc<Vec<Absent>> {
        Arc::clone(absent)
    }
}

/// Whether any object lacks something on the platform. In most clusters none does, and no status needs to ask for its own.
pub(crate) struct AnyAbsent;
impl Query for AnyAbsent {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        !view.keys::<AbsentFor>().is_empty()
    }
}

/// The object that blocks a claim of a node, if there is one, by kind, namespace and name.
pub(crate) fn absent_claim(view: &View<'_>, node: &str, claim: &str) -> Option<Absent> {
    if !view.get::<AnyAbsent>(&()) {
        return None;
    }
    let config = ObjectRef::named(Kind::NodeNetworkConfig, node);
    let absent = view.part::<AbsentPart>(&config)?;
    let claim = format!("IPAddressClaim {claim}");
    let mut absent = absent.iter().filter(|one| one.why != Why::Pending);
    absent.find(|one| one.object == claim).cloned()
}

/// What an object lacks on the platform, the first of it first.
pub(crate) fn absent(view: &View<'_>, subject: &ObjectRef) -> Option<Arc<Vec<Absent>>> {
    let may_lack = subject.kind.role() != Role::Other && view.get::<AnyAbsent>(&());
    let absent = may_lack.then(|| view.part::<AbsentPart>(subject)).flatten();
    absent.filter(|absent| !absent.is_empty())
}
