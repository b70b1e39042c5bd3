//! frrk8s
