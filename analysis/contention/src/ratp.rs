//! The Resource Acquire Time Penalty (section 3.1).

/// Seconds a task spends to get one unit of a resource. Infinite for who gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratp(f64);

impl Ratp {
    /// Eqs. 1 and 2, and with blocked seconds for δt eq. 7: `seconds` spent on `units`.
    pub fn new(seconds: f64, units: f64) -> Ratp {
        Ratp(if units > 0.0 {
            seconds / units
        } else {
            f64::INFINITY
        })
    }

    /// Eqs. 3 and 11, RATP*: the least a host with this capacity (units a second) can take.
    pub fn ideal(capacity: f64) -> Ratp {
        Ratp::new(1.0, capacity)
    }

    /// Seconds a unit.
    pub fn seconds_per_unit(self) -> f64 {
        self.0
    }

    /// Eqs. 4 and 15: how many times the ideal this is, beyond the ideal itself; 0 when all was the task's own.
    pub fn slowdown(self, ideal: Ratp) -> f64 {
        (self.0 - ideal.0) / ideal.0
    }

    /// One term of eqs. 6, 8 and 17 to 20: the blame of one with this RATP toward a victim. 0 for who used nothing.
    pub fn blame_toward(self, victim: Ratp) -> f64 {
        if self.0.is_infinite() {
            0.0
        } else {
            victim.0 / self.0
        }
    }
}
