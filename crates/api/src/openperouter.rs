//! openperouter
