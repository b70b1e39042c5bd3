//! selvedge
fn main() {}
