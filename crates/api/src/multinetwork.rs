//! multinetwork
