//! The Resource Acquire Time Penalty (section 3.1).

/// Seconds that a task spends to get one unit of a resource. Infinite if it gets nothing.
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

    /// Eqs. 3 and 11, RATP*: the least possible on a host with this capacity (units a second).
    pub fn ideal(capacity: f64) -> Ratp {
        Ratp::new(1.0, capacity)
    }

    /// Seconds for each unit.
    pub fn seconds_per_unit(self) -> f64 {
        self.0
    }

    /// Eqs. 4 and 15: by which multiple of the ideal it exceeds the ideal; 0 if the task had the whole resource.
    pub fn slowdown(self, ideal: Ratp) -> f64 {
        (self.0 - ideal.0) / ideal.0
    }

    /// One term of eqs. 6, 8 and 17 to 20: the blame of a user with this RATP for a victim. 0 if it used nothing.
    pub fn blame_toward(self, victim: Ratp) -> f64 {
        if self.0.is_infinite() {
            0.0
        } else {
            victim.0 / self.0
        }
    }
}
