//! Brings the kernel of this machine to a node's config, and checks that nothing is left to do.
//!
//! `apply CONFIG.json [--give-back] [--cut N] [--interfaces]`: prints the plan, applies it, observes again; exit code 1
//! unless the second plan is empty. `--give-back` takes everything back; `--cut` kills the process after N steps, as
//! a crash would.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use std::{error::Error, process::ExitCode, time::Instant};

use api::tcaas::NodeNetworkConfigSpec;
use linux::{Desired, Plan, Step, desired, diff, netlink::Kernel};
use selvedge_linux as linux;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run()));
    match result {
        Ok(code) => code,
        Err(error) => {
            let mut next: Option<&dyn Error> = Some(error.as_ref());
            while let Some(error) = next {
                eprintln!("error: {error}");
                next = error.source();
            }
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = arguments.len();
        arguments.retain(|argument| argument != name);
        arguments.len() < before
    };
    let (give_back, inventory) = (flag("--give-back"), flag("--interfaces"));
    let cut = arguments.iter().position(|argument| argument == "--cut");
    let cut = match cut {
        Some(at) => arguments
            .drain(at..)
            .nth(1)
            .map(|n| n.parse())
            .transpose()?,
        None => None,
    };
    let path = arguments.first().ok_or("which config?")?;
    let config: NodeNetworkConfigSpec = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let namespace = config
        .underlay
        .as_ref()
        .map(|underlay| underlay.namespace.clone());
    let kernel = Kernel::open(&namespace.ok_or("the config has no underlay")?)?;
    let start = Instant::now();
    let desired = if give_back {
        Desired::default()
    } else {
        desired(&config).map_err(|all| join(&all))?
    };
    println!("wished in {:?}", start.elapsed());
    let start = Instant::now();
    let observed = kernel.observe().await?;
    let (seen, start) = (start.elapsed(), Instant::now());
    let plan = diff(&desired, &observed).map_err(|all| join(&all))?;
    println!("observed in {seen:?}, planned in {:?}", start.elapsed());
    for (title, steps) in [
        ("mirror teardown", plan.mirror_teardown()),
        ("before FRR", plan.before_frr()),
        ("after FRR", plan.after_frr()),
        ("mirror setup", plan.mirror_setup()),
    ] {
        println!("{title}: {} steps", steps.len());
        for step in steps {
            println!("  {step}");
        }
    }
    for note in plan.notes() {
        println!("note: {note}");
    }
    if let Some(cut) = cut {
        let steps: Vec<Step> = plan.steps().take(cut).cloned().collect();
        kernel.apply(&steps).await?;
        println!("cut after {} steps", steps.len());
        std::process::abort();
    }
    let start = Instant::now();
    let mut failures = kernel.attempt(plan.mirror_teardown()).await;
    kernel.apply(plan.before_frr()).await?;
    kernel.apply(plan.after_frr()).await?;
    failures.extend(kernel.attempt(plan.mirror_setup()).await);
    for failure in failures {
        println!("mirror: {failure}: {:?}", failure.source);
    }
    println!("applied {} steps in {:?}", plan.len(), start.elapsed());
    if inventory {
        for interface in kernel.interfaces().await? {
            println!("{interface:?}");
        }
    }
    second(&kernel, &desired).await
}

async fn second(kernel: &Kernel, desired: &Desired) -> Result<ExitCode, Box<dyn Error>> {
    let plan = plan(kernel, desired).await?;
    for step in plan.steps() {
        println!("still to do: {step}");
    }
    Ok(if plan.is_empty() {
        println!("second plan is empty");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn plan(kernel: &Kernel, desired: &Desired) -> Result<Plan, Box<dyn Error>> {
    let observed = kernel.observe().await?;
    Ok(diff(desired, &observed).map_err(|all| join(&all))?)
}

fn join<T: ToString>(all: &[T]) -> String {
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
