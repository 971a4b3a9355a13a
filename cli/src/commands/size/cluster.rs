//! Parses the cluster of `--cluster`.

use std::path::Path;

use anyhow::{Result, bail};
use unfuse_report::text::list;
use unfuse_sizing::{Cluster, Prices};

/// Parses `TYPE=N,TYPE=N`. Returns the machines and their number of slots.
pub(super) fn cluster(text: &str, prices: &Path) -> Result<(Cluster, f64)> {
    let table = Prices::read(prices)?;
    let mut machines = Vec::new();
    let mut slots = 0.0;
    for part in text.split(',') {
        let named = part
            .split_once('=')
            .map(|(name, count)| (name.trim(), count.trim().parse::<u32>()));
        let Some((name, Ok(count))) = named else {
            bail!("--cluster {text}: TYPE=N is expected instead of {part:?}, such as m5.xlarge=3");
        };
        let Some(instance) = table
            .instances
            .iter()
            .find(|instance| instance.name == name)
        else {
            let known: Vec<&String> = table
                .instances
                .iter()
                .map(|instance| &instance.name)
                .collect();
            bail!(
                "{} has no {name}; it has {}",
                prices.display(),
                list(&known)
            );
        };
        if let Some(most) = instance.at_most.filter(|most| count > *most) {
            bail!(
                "--cluster {text}: {} allows at most {most} of {name}",
                prices.display()
            );
        }
        slots += f64::from(count) * instance.capacity();
        machines.push((name.to_owned(), count));
    }
    Ok((Cluster(machines), slots))
}
