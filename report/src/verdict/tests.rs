use super::*;

#[test]
fn rules_are_read() {
    assert!(RULES.len() > 10);
}
