//! Samples that wait as addresses until the code map can have their code.

use std::collections::VecDeque;

/// A sample without its addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawSample {
    pub(super) time: u64,
    pub(super) count: u64,
    pub(super) weight_ns: u64,
    pub(super) in_kernel: bool,
    pub(super) broken: bool,
    chain: u32,
}

/// Waiting samples in order of time, their callchains in one buffer.
#[derive(Debug, Default)]
pub(super) struct RawSamples {
    waiting: VecDeque<RawSample>,
    addresses: VecDeque<u64>,
    building: Vec<u64>,
}

impl RawSamples {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn has_before(&self, time: u64) -> bool {
        self.waiting
            .front()
            .is_some_and(|sample| sample.time < time)
    }

    /// The callchain being built, leaf first.
    pub(super) fn chain(&mut self) -> &mut Vec<u64> {
        &mut self.building
    }

    /// Adds a sample with the current callchain.
    pub(super) fn push(
        &mut self,
        time: u64,
        count: u64,
        weight_ns: u64,
        in_kernel: bool,
        broken: bool,
    ) {
        let chain = self.building.len() as u32;
        self.addresses.extend(self.building.drain(..));
        self.waiting.push_back(RawSample {
            time,
            count,
            weight_ns,
            in_kernel,
            broken,
            chain,
        });
    }

    /// Passes every sample before `time` to `each`, with its callchain (leaf first).
    pub(super) fn take_before(&mut self, time: u64, mut each: impl FnMut(&RawSample, &[u64])) {
        let mut chain = std::mem::take(&mut self.building);
        while let Some(sample) = self.waiting.pop_front_if(|sample| sample.time < time) {
            chain.clear();
            chain.extend(self.addresses.drain(..sample.chain as usize));
            each(&sample, &chain);
        }
        chain.clear();
        self.building = chain;
    }
}
