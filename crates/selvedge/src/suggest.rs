//! Names that are similar to one that is not known.

/// The name that is likely to be meant: the nearest one, if it is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let distance = |known: &str| strsim::osa_distance(&lower, &known.to_ascii_lowercase());
    let (distance, near) = known
        .filter(|known| *known != name)
        .map(|known| (distance(known), known))
        .min()?;
    let most = (name.chars().count().max(near.chars().count()) / 3).clamp(1, 4);
    (distance <= most).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_finger_is_near_and_another_word_is_not() {
        let known = ["Network", "Destination", "Layer2Attachment", "VRF"];
        let of = |name: &str| nearest(name, known.into_iter());
        assert_eq!(of("Netwrok"), Some("Network"));
        assert_eq!(of("network"), Some("Network"));
        assert_eq!(of("Layer2Attachement"), Some("Layer2Attachment"));
        assert_eq!(of("vfr"), Some("VRF"));
        assert_eq!(of("Deployment"), None);
        assert_eq!(of("ServiceAccount"), None);
    }
}
