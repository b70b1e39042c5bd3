//! All custom resource definitions.
