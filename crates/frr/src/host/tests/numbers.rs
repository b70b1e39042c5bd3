//! Sequence numbers: what stays keeps its own, and there is an end whatever comes.

use super::*;
use crate::{
    config::{PrefixList, PrefixRange, PrefixRule},
    with_numbers_of,
};

/// A router that gives one prefix so many communities.
fn with_communities(numbers: impl Iterator<Item = u32>) -> Desired {
    let communities = numbers.map(|number| {
        let community = format!("large:64512:{number}:1");
        json!({"community": community, "prefixes": ["10.0.0.0/24"]})
    });
    let communities: Vec<Value> = communities.collect();
    made(with_neighbor(&json!({
        "advertise": {"prefixes": ["10.0.0.0/24"], "communities": communities},
    })))
}

#[test]
fn what_stays_keeps_its_number_whichever_comes_or_goes_beside_it() {
    let few = with_communities(1000..1400);
    let mut met = 0;
    for one in 100..200 {
        let more = with_communities((1000..1400).chain([one]));
        // The list, and the entry of the route map with its match, its community and that it goes on.
        assert_eq!(diff(&few.config, &more.config).n_lines(), 4, "{one}");
        let running = with_numbers_of(&few.config, &more.config);
        met += u32::from(*running != more.config);
        assert!(diff(&running, &more.config).is_empty(), "{one}");
        assert_eq!(diff(&running, &few.config).n_lines(), 2, "{one}");
    }
    assert!(met > 0, "no two met on one number");
}

#[test]
fn more_properties_than_numbers_have_an_end_and_are_reported() {
    let all = with_communities(1..2_990);
    assert_eq!(messages(&all), [""; 0]);
    let many = with_communities(1..3_100);
    let said = messages(&many);
    assert!(
        said.len() == 1 && said[0].contains("3099 local preferences and communities"),
        "{said:?}"
    );
}

#[test]
fn only_rules_that_may_change_places_keep_the_number_of_the_running_one() {
    let range = |text: &str| PrefixRange::new(text.parse().unwrap(), None, None).unwrap();
    let permit = |text: &str| PrefixRule::permit(range(text));
    let deny = PrefixRule::any(RouteMapAction::Deny);
    let config = |list: PrefixList| {
        let key = (IpFamily::V4, "one".parse().unwrap());
        FrrConfig {
            prefix_lists: [(key, list)].into(),
            ..FrrConfig::default()
        }
    };
    let (old, new) = (permit("10.0.0.0/24"), permit("10.0.1.0/24"));
    let running = config([(7, old)].into());
    let beside = config([(7, new), (8, old)].into());
    let kept = config([(7, old), (8, new)].into());
    assert_eq!(*with_numbers_of(&running, &beside), kept);
    assert_eq!(diff(&running, &beside).n_lines(), 1);
    // Behind a rule that denies, its place matters.
    let behind = config([(7, deny), (8, old)].into());
    assert_eq!(*with_numbers_of(&running, &behind), behind);
}
