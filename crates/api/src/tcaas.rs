//! tcaas
