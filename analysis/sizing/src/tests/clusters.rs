use proptest::prelude::*;

use crate::*;

fn prices(machines: &[(u32, f64, f64, Option<u32>)]) -> Prices {
    let instances = machines
        .iter()
        .enumerate()
        .map(|(index, (slots, speed, price, at_most))| Instance {
            name: format!("type-{index}"),
            slots: *slots,
            speed: *speed,
            on_demand: *price,
            spot: None,
            at_most: *at_most,
        });
    Prices {
        currency: "USD".into(),
        instances: instances.collect(),
    }
}

/// Every cluster with its capacity and hourly price.
fn all(machines: &[(u32, f64, f64, Option<u32>)], most: f64) -> Vec<(f64, f64)> {
    let mut clusters = vec![(0.0, 0.0)];
    for (slots, speed, price, at_most) in machines {
        let mut next = Vec::new();
        for (capacity, cost) in &clusters {
            for count in 0..=at_most.unwrap_or(u32::MAX) {
                let capacity = capacity + f64::from(count) * f64::from(*slots) * speed;
                if capacity > most + 1e-6 {
                    break;
                }
                next.push((capacity, cost + f64::from(count) * price));
            }
        }
        clusters = next;
    }
    clusters
}

type Machines = Vec<(u32, f64, f64, Option<u32>)>;

fn machines() -> impl Strategy<Value = Machines> {
    let speed = prop::sample::select(vec![1.0, 0.5, 1.25]);
    let machine = (1..6u32, speed, 0.05..2.0f64, prop::option::of(0..5u32));
    prop::collection::vec(machine, 1..4)
}

proptest! {
    /// The whole-number answers equal brute force, and the relaxed optimum is below them.
    #[test]
    fn no_cluster_is_better(
        machines in machines(), k in 0.0..50.0f64, p in 0.0..2.0f64, q in 0.0..500.0f64, deadline in 1.0..200.0f64, budget in 0.001..1.0f64,
    ) {
        let (least, most) = (1.0, 16.0);
        let time = |slots: f64| Ok(k + p * slots + q / slots);
        let Ok(market) = Market::new(&prices(&machines), Tariff::OnDemand, least, most) else {
            prop_assert!(all(&machines, most).iter().all(|(capacity, _)| *capacity < least - 1e-6));
            return Ok(());
        };
        let brute: Vec<(f64, f64)> = all(&machines, most)
            .into_iter()
            .filter(|(capacity, _)| *capacity >= least - 1e-9)
            .map(|(capacity, price)| {
                let seconds = k + p * capacity + q / capacity;
                (seconds, price * seconds / 3600.0)
            })
            .collect();
        let in_time = brute.iter().filter(|(seconds, _)| *seconds < deadline - 1e-9).map(|(_, cost)| *cost).fold(f64::INFINITY, f64::min);
        let bound = relaxed(&market, (k, p, q), deadline);
        match cheapest(&market, &time, None, deadline) {
            Ok(offer) => {
                prop_assert!((offer.cost - in_time).abs() <= 1e-9 * (1.0 + in_time), "{} {in_time}", offer.cost);
                prop_assert!(offer.seconds < deadline);
                let bound = bound.expect("a solution").expect("a cluster meets it");
                prop_assert!(bound.least_cost <= offer.cost * (1.0 + 1e-5) + 1e-9, "{bound:?} {offer:?}");
            }
            Err(SizingError::NoCluster { seconds, .. }) => {
                prop_assert_eq!(in_time, f64::INFINITY);
                let fastest = brute.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
                prop_assert!((seconds - fastest).abs() < 1e-9);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
        let fastest = brute.iter().filter(|(_, cost)| *cost <= budget).map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        match best(&market, &time, budget) {
            Ok(offer) => prop_assert!((offer.seconds - fastest).abs() < 1e-9 && offer.cost <= budget),
            Err(SizingError::NoBudget { .. }) => prop_assert_eq!(fastest, f64::INFINITY),
            Err(other) => prop_assert!(false, "{other}"),
        }
        let curve = curve(&market, &time).expect("a curve");
        prop_assert!(curve.is_sorted_by(|a, b| a.seconds < b.seconds && a.cost > b.cost));
        for (seconds, cost) in brute {
            let covered = curve.iter().any(|offer| offer.seconds <= seconds + 1e-9 && offer.cost <= cost + 1e-9);
            prop_assert!(covered, "{seconds} {cost}");
        }
    }
}

#[test]
fn one_type_without_limits_meets_the_bound() {
    let market = Market::new(
        &prices(&[(1, 1.0, 0.36, None)]),
        Tariff::OnDemand,
        1.0,
        64.0,
    )
    .expect("a market");
    // 10 + 120 / n < 25 from n = 8 on; the cost rises with n.
    let bound = relaxed(&market, (10.0, 0.0, 120.0), 25.0)
        .expect("a solution")
        .expect("a cluster");
    assert!((bound.slots - 8.0).abs() < 1e-3, "{bound:?}");
    assert!(
        (bound.least_cost - 8.0 * 0.36 * 25.0 / 3600.0).abs() < 1e-6,
        "{bound:?}"
    );
    assert_eq!(
        relaxed(&market, (10.0, 0.0, 120.0), 9.0).expect("an answer"),
        None
    );
}

#[test]
fn a_price_table_that_cannot_be_is_refused() {
    let says = |text: &str| {
        Prices::parse(text, "prices.toml")
            .expect_err("a refusal")
            .to_string()
    };
    let one = |rest: &str| {
        says(&format!(
            "currency = 'USD'\n[[instance]]\nname = 'a'\nslots = 2\n{rest}\n"
        ))
    };
    for (text, words) in [
        (says(""), "no price table"),
        (says("currency = 'USD'\ninstance = []\n"), "has no instance"),
        (one(""), "on_demand"),
        (one("on_demand = -1"), "a price of -1"),
        (one("on_demand = nan"), "a price of NaN"),
        (one("on_demand = 1\nspot = 0"), "a price of 0"),
        (one("on_demand = 1\nspeed = 0"), "a speed of 0"),
        (one("on_demand = 1\nsped = 1"), "sped"),
        (
            one("on_demand = 1\n[[instance]]\nname = 'a'\nslots = 2\non_demand = 1"),
            "a occurs twice",
        ),
        (
            says("currency = 'USD'\n[[instance]]\nname = 'a'\nslots = 0\non_demand = 1"),
            "a has no slots",
        ),
    ] {
        assert!(
            text.contains(words) && text.contains("prices.toml"),
            "{text}"
        );
    }
    let nothing = Market::new(
        &prices(&[(64, 1.0, 1.0, None)]),
        Tariff::OnDemand,
        1.0,
        16.0,
    );
    assert!(matches!(nothing, Err(SizingError::NoMachines { .. })));
    let no_spot = Market::new(&prices(&[(1, 1.0, 1.0, None)]), Tariff::Spot, 1.0, 16.0);
    assert!(matches!(no_spot, Err(SizingError::NoMachines { .. })));
}
