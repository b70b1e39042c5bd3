//! The tests of the whole, by ring: what they need grows with the number, and a part that is missing fails the test.
#![expect(clippy::print_stderr, reason = "tests print the times they measure")]
#![expect(
    clippy::indexing_slicing,
    reason = "a test that finds nothing where it looks must fail"
)]

#[path = "rings/support.rs"]
mod support;

#[path = "rings/architecture.rs"]
mod architecture;
#[cfg(feature = "bench-cli")]
#[path = "rings/bench_cli.rs"]
mod bench_cli;
#[cfg(feature = "bench-frr")]
#[path = "rings/bench_frr.rs"]
mod bench_frr;
#[cfg(feature = "bench-node")]
#[path = "rings/bench_node.rs"]
mod bench_node;
#[path = "rings/data.rs"]
mod data;
#[path = "rings/ring1_answers.rs"]
mod ring1_answers;
#[path = "rings/ring1_broken.rs"]
mod ring1_broken;
#[path = "rings/ring1_cases.rs"]
mod ring1_cases;
#[path = "rings/ring1_docs.rs"]
mod ring1_docs;
#[path = "rings/ring1_docs_picture.rs"]
mod ring1_docs_picture;
#[path = "rings/ring1_docs_plan.rs"]
mod ring1_docs_plan;
#[path = "rings/ring1_docs_reference.rs"]
mod ring1_docs_reference;
#[path = "rings/ring1_fuzz.rs"]
mod ring1_fuzz;
#[path = "rings/ring1_harm.rs"]
mod ring1_harm;
#[path = "rings/ring1_harm_addresses.rs"]
mod ring1_harm_addresses;
#[path = "rings/ring1_harm_held.rs"]
mod ring1_harm_held;
#[path = "rings/ring1_harm_new.rs"]
mod ring1_harm_new;
#[path = "rings/ring1_harm_others.rs"]
mod ring1_harm_others;
#[path = "rings/ring1_harm_revoked.rs"]
mod ring1_harm_revoked;
#[path = "rings/ring1_harm_silent.rs"]
mod ring1_harm_silent;
#[path = "rings/ring1_harm_values.rs"]
mod ring1_harm_values;
#[path = "rings/ring1_host_evpn.rs"]
mod ring1_host_evpn;
#[path = "rings/ring1_image.rs"]
mod ring1_image;
#[path = "rings/ring1_inputs.rs"]
mod ring1_inputs;
#[path = "rings/ring1_manners.rs"]
mod ring1_manners;
#[path = "rings/ring1_many_vnis.rs"]
mod ring1_many_vnis;
#[path = "rings/ring1_messages.rs"]
mod ring1_messages;
#[path = "rings/ring1_plan.rs"]
mod ring1_plan;
#[path = "rings/ring1_plan_cluster.rs"]
mod ring1_plan_cluster;
#[path = "rings/ring1_plan_disruption.rs"]
mod ring1_plan_disruption;
#[path = "rings/ring1_plan_unread.rs"]
mod ring1_plan_unread;
#[path = "rings/ring1_questions.rs"]
mod ring1_questions;
#[path = "rings/ring1_regressions.rs"]
mod ring1_regressions;
#[path = "rings/ring1_rules.rs"]
mod ring1_rules;
#[path = "rings/ring1_screens.rs"]
mod ring1_screens;
#[path = "rings/ring1_seeds.rs"]
mod ring1_seeds;
#[path = "rings/ring1_selectors.rs"]
mod ring1_selectors;
#[path = "rings/ring1_terminal.rs"]
mod ring1_terminal;
#[path = "rings/ring1_words.rs"]
mod ring1_words;
#[path = "rings/ring2_accepted.rs"]
mod ring2_accepted;
#[path = "rings/ring3.rs"]
mod ring3;
#[path = "rings/ring3_book.rs"]
mod ring3_book;
#[path = "rings/ring3_host_router.rs"]
mod ring3_host_router;
#[path = "rings/ring3_host_values.rs"]
mod ring3_host_values;
#[path = "rings/ring3_internal_host.rs"]
mod ring3_internal_host;
#[path = "rings/ring4.rs"]
mod ring4;
#[path = "rings/ring4_confirmation.rs"]
mod ring4_confirmation;
#[path = "rings/ring4_files.rs"]
mod ring4_files;
#[path = "rings/ring4_grounds.rs"]
mod ring4_grounds;
#[path = "rings/ring4_health.rs"]
mod ring4_health;
#[path = "rings/ring4_host_router.rs"]
mod ring4_host_router;
#[path = "rings/ring4_kill_matrix.rs"]
mod ring4_kill_matrix;
#[path = "rings/ring4_mirrors.rs"]
mod ring4_mirrors;
#[path = "rings/ring4_safety.rs"]
mod ring4_safety;
#[path = "rings/ring4_segments.rs"]
mod ring4_segments;
#[path = "rings/ring4_silence.rs"]
mod ring4_silence;
#[path = "rings/ring4_underlay_change.rs"]
mod ring4_underlay_change;
#[path = "rings/ring5.rs"]
mod ring5;
#[path = "rings/ring6.rs"]
mod ring6;
#[path = "rings/ring6_cut_off.rs"]
mod ring6_cut_off;
#[path = "rings/ring6_fabric_objects.rs"]
mod ring6_fabric_objects;
#[path = "rings/ring6_frr_configurations.rs"]
mod ring6_frr_configurations;
#[path = "rings/ring6_host_router.rs"]
mod ring6_host_router;
#[path = "rings/ring6_host_router_node.rs"]
mod ring6_host_router_node;
#[path = "rings/ring6_no_harm.rs"]
mod ring6_no_harm;
#[path = "rings/ring6_reports.rs"]
mod ring6_reports;
#[path = "rings/ring6_restarts.rs"]
mod ring6_restarts;
#[path = "rings/ring6_rollout.rs"]
mod ring6_rollout;
