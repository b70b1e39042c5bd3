//! People and programs that the API server knows by a token, and how they reach it.

use serde_json::json;

/// A user that the API server authenticates by a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name, such as `system:serviceaccount:selvedge:agent`.
    pub name: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// What the user shows.
    pub token: String,
}

impl User {
    /// A user whose token is made from the name: these tokens never leave the lab.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            token: format!("lab-{}", plain(name)),
        }
    }

    /// The user's line in the file of `--token-auth-file`.
    pub(super) fn token_line(&self) -> String {
        format!(
            "{},{},{},\"{}\"\n",
            self.token,
            self.name,
            self.name,
            self.groups.join(",")
        )
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}.kubeconfig", plain(&self.name))
    }

    /// A kubeconfig that holds everything needed; JSON, which every reader of YAML takes.
    pub(super) fn kubeconfig(&self, url: &str, authority: &str) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": "user", "user": {"token": self.token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "user"}}],
            "current-context": "lab",
        })
        .to_string()
    }
}

/// Letters and digits only, for tokens and file names.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}
