//! The tests of the whole, by ring: what they need grows with the number, and a part that is missing fails the test.
#![expect(clippy::print_stderr, reason = "tests print the times they measure")]

#[path = "rings/support.rs"]
mod support;

#[path = "rings/architecture.rs"]
mod architecture;
#[path = "rings/ring1_cases.rs"]
mod ring1_cases;
#[path = "rings/ring3.rs"]
mod ring3;
#[path = "rings/ring4.rs"]
mod ring4;
#[path = "rings/ring6.rs"]
mod ring6;
