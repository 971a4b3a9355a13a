//! Price tables, for `unfuse size`.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_sizing::{Market, Prices, Tariff};

#[test]
fn prices() {
    check!().with_test_time(TEST_TIME).for_each(|bytes| {
        read(bytes);
    });
}

#[test]
fn prices_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("prices"))
        .for_each(|bytes| {
            read(bytes);
        });
}

#[test]
fn the_corpus_has_clusters() {
    assert!(
        unfuse_fuzz::corpus("prices")
            .iter()
            .any(|bytes| read(bytes) > 0)
    );
}

/// Checks that a cluster has the price and the slots of its machines, and no more machines than are available. Returns
/// the number of clusters.
fn read(bytes: &[u8]) -> usize {
    let Ok(prices) = Prices::parse(&String::from_utf8_lossy(bytes), "prices.toml") else {
        return 0;
    };
    let mut clusters = 0;
    for tariff in [Tariff::OnDemand, Tariff::Spot] {
        let Ok(market) = Market::new(&prices, tariff, 1.0, 12.0) else {
            continue;
        };
        let offers = market
            .offers(&|slots| Ok(100.0 / slots))
            .expect("a time for each");
        for offer in &offers {
            let (mut cost, mut slots) = (0.0, 0.0);
            for (name, count) in &offer.cluster.0 {
                let machine = prices
                    .instances
                    .iter()
                    .find(|machine| machine.name == *name);
                let machine = machine.expect("a machine of the table");
                assert!(
                    *count > 0 && machine.at_most.is_none_or(|most| *count <= most),
                    "{offer:?}"
                );
                cost += f64::from(*count) * machine.price(tariff).expect("a price");
                slots += f64::from(*count) * machine.capacity();
            }
            // The capacity of a machine is rounded to hundredths of a slot, and is at least one hundredth.
            let machines: u32 = offer.cluster.0.iter().map(|(_, count)| count).sum();
            assert!(
                (slots - offer.slots).abs() <= 0.011 * f64::from(machines),
                "{offer:?}"
            );
            assert!(
                (cost - offer.per_hour).abs() <= 1e-6 * cost,
                "{offer:?}: {cost}"
            );
        }
        clusters += offers.len();
    }
    clusters
}
