//! The sizing problem with fractional numbers of machines, as a second-order cone program for the interior-point
//! solver.
//!
//! For one size and number of iterations equation 8 is T = K + P·n + Q/n, convex in n, the capacity of all machines.
//! The cost of equation 9, r·T with the hourly price r, is not convex in several types: r·n and r/n are products. But r
//! ≥ ρ·n, where ρ is the least price of a slot, so K·r + P·ρ·n² + Q·ρ is convex and at most the cost; it equals the
//! cost if the type with the cheapest slots suffices. Its optimum is a lower bound for clusters of whole machines, and
//! the distance of the answer from it is the price of whole machines.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSolver, IPSolver, NonnegativeConeT, SecondOrderConeT, SupportedConeT,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::Market;
use crate::SizingError;
use crate::least_squares::{is_solved, settings};

/// The optimum with fractional numbers of machines.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RelaxedOptimum {
    /// Number of machines of each type.
    pub machines: Vec<(String, f64)>,
    /// Their capacity.
    pub slots: f64,
    /// T_Est there, s.
    pub seconds: f64,
    /// The lower bound of the cost (with a deadline).
    pub least_cost: f64,
}

/// Rows of Ax + s = b by cone.
struct Program {
    columns: usize,
    rows: Vec<Vec<f64>>,
    right: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
}

/// The cheapest cluster for a deadline in s, with T = K + P·n + Q/n (s). `None` if no capacity of the market meets it.
///
/// # Errors
/// If the solver does not converge.
pub fn relaxed(
    market: &Market,
    (constant, by_slot, shared): (f64, f64, f64),
    deadline: f64,
) -> Result<Option<RelaxedOptimum>, SizingError> {
    let kinds = market.machines.len();
    let most = market.most;
    let scale = deadline.max(constant).max(1e-9);
    let program = constraints(market, (constant, by_slot, shared), deadline, scale);
    let per_slot = |machine: &super::market::Machine| machine.price / machine.capacity;
    let least_price = market
        .machines
        .iter()
        .map(per_slot)
        .fold(f64::INFINITY, f64::min);
    let unit_cost = least_price * most * scale;
    let mut cost = program.row();
    for (kind, machine) in market.machines.iter().enumerate() {
        cost[kind] = constant * per_slot(machine) * most / unit_cost;
    }
    cost[kinds + 1] = by_slot * least_price * most * most / unit_cost;
    // If nothing depends on n, the fewest machines.
    cost[..kinds].iter_mut().for_each(|factor| *factor += 1e-9);
    let Some(found) = program.solve(&cost)? else {
        return Ok(None);
    };
    let slots = found[..kinds].iter().sum::<f64>() * most;
    let products: f64 = cost.iter().zip(&found).map(|(a, b)| a * b).sum();
    let machines = market.machines.iter().zip(&found);
    Ok(Some(RelaxedOptimum {
        machines: machines
            .map(|(machine, share)| {
                (
                    machine.name.clone(),
                    (share * most / machine.capacity).max(0.0),
                )
            })
            .collect(),
        slots,
        seconds: constant + by_slot * slots + shared / slots.max(f64::MIN_POSITIVE),
        least_cost: (products * unit_cost + shared * least_price) / 3600.0,
    }))
}

/// The constraints of a cluster, with times in units of `scale` s. The columns are shares of the market's largest
/// capacity: y by type of machine, then u ≥ 1 / Σy, then q ≥ (Σy)².
fn constraints(
    market: &Market,
    (constant, by_slot, shared): (f64, f64, f64),
    deadline: f64,
    scale: f64,
) -> Program {
    let kinds = market.machines.len();
    let most = market.most;
    let (u, q) = (kinds, kinds + 1);
    let mut program = Program {
        columns: kinds + 2,
        rows: vec![],
        right: vec![],
        cones: vec![],
    };
    let all = |factor: f64, program: &Program| {
        let mut row = program.row();
        row[..kinds].fill(factor);
        row
    };
    let mut at_most: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut time = all(by_slot * most / scale, &program);
    time[u] = shared / most / scale;
    at_most.push((time, (deadline - constant) / scale));
    at_most.push((all(1.0, &program), 1.0));
    at_most.push((all(-1.0, &program), -market.least / most));
    for (kind, machine) in market.machines.iter().enumerate() {
        at_most.push((program.unit(kind, -1.0), 0.0));
        if let Some(count) = machine.at_most {
            let share = f64::from(count) * machine.capacity / most;
            at_most.push((program.unit(kind, 1.0), share));
        }
    }
    let rows = at_most.len();
    for (row, right) in at_most {
        program.push(row, right);
    }
    program.cones.push(NonnegativeConeT(rows));
    // |(2, u − y)| ≤ u + y.
    let mut sum = all(-1.0, &program);
    sum[u] = -1.0;
    let mut difference = all(1.0, &program);
    difference[u] = -1.0;
    program.push(sum, 0.0);
    program.push(program.row(), 2.0);
    program.push(difference, 0.0);
    program.cones.push(SecondOrderConeT(3));
    // |(2y, q − 1)| ≤ q + 1.
    program.push(program.unit(q, -1.0), 1.0);
    program.push(all(-2.0, &program), 0.0);
    program.push(program.unit(q, -1.0), -1.0);
    program.cones.push(SecondOrderConeT(3));
    program
}

impl Program {
    fn row(&self) -> Vec<f64> {
        vec![0.0; self.columns]
    }

    fn unit(&self, column: usize, factor: f64) -> Vec<f64> {
        let mut row = self.row();
        row[column] = factor;
        row
    }

    fn push(&mut self, row: Vec<f64>, right: f64) {
        self.rows.push(row);
        self.right.push(right);
    }

    /// `None` if nothing meets the constraints.
    fn solve(&self, cost: &[f64]) -> Result<Option<Vec<f64>>, SizingError> {
        use clarabel::solver::SolverStatus::{AlmostPrimalInfeasible, PrimalInfeasible};
        let quadratic = CscMatrix::zeros((self.columns, self.columns));
        let rows = CscMatrix::from(&self.rows);
        let solver = DefaultSolver::new(
            &quadratic,
            cost,
            &rows,
            &self.right,
            &self.cones,
            settings(),
        );
        let mut solver = solver.map_err(|error| SizingError::Solver(error.to_string()))?;
        solver.solve();
        match solver.solution.status {
            PrimalInfeasible | AlmostPrimalInfeasible => Ok(None),
            status if is_solved(status) => Ok(Some(solver.solution.x.clone())),
            status => Err(SizingError::Solver(format!("{status:?}"))),
        }
    }
}
