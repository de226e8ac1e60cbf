//! The planner, with costs of a machine that is always the same.

mod common;

use common::{Random, near_copies, skewed, uniform};
use lookalike::{
    index::{Answers, Build, Index, Promise, Queries, Scan, Tables},
    plan::{Choice, Costs, LineCost, Plan, Sample, ScanCost, Task, plans, price},
    table::Stored,
};

fn costs() -> Costs {
    let line = |bytes, many, few| LineCost { bytes, many, few };
    let scan = |bits| ScanCost { bits, near: 0.14, far: 0.25, many: 0.04, many_wide: 0.08 };
    Costs {
        kernel: "none".to_owned(),
        lines: vec![line(1 << 17, 1.5, 1.5), line(1 << 24, 5.0, 6.0), line(1 << 28, 10.0, 15.0)],
        call: 150.0,
        query: 10.0,
        step: 10.0,
        probe: 10.0,
        lined: 8.0,
        check: 1.5,
        other: 0.3,
        check_split: 1.5,
        pair: 6.0,
        again: 8.0,
        scan: vec![scan(64), scan(256)],
    }
}

fn task(radius: u32) -> Task {
    Task { radius, nearest: None, batch: 1000, queries: None, memory: None, recall: 1.0 }
}

fn is_tables(plan: &Plan) -> bool {
    matches!(plan.index, Choice::Tables(..))
}

#[test]
fn every_plan_can_be_built_and_does_what_it_says() {
    for bits in [32, 64, 72, 256] {
        let mut random = Random::new(1);
        let rows = near_copies(&skewed(bits, 1000, &mut random), 2, 4, &mut random);
        let queries = common::part(&rows, 0..20);
        let sample = Sample::of(&rows).unwrap();
        for radius in [0, 1, 3, 6, bits / 8, bits, bits + 1, u32::MAX] {
            let mut truth = Answers::new();
            Scan::new(&rows).unwrap().within((&queries).into(), radius, &mut truth).unwrap();
            let plans = plans(&costs(), &sample, &task(radius));
            assert!(plans.iter().all(|plan| plan.exact && plan.expected_recall == 1.0));
            assert!(plans.is_sorted_by_key(|plan| plan.query_seconds));
            assert_eq!(plans.iter().filter(|plan| !is_tables(plan)).count(), 1);
            for plan in plans.iter().take(4) {
                let Choice::Tables(method, build) = plan.index else { continue };
                let index = Tables::build(&rows, method, build).unwrap();
                let mut found = Answers::new();
                let promise = index.within((&queries).into(), radius, &mut found).unwrap();
                assert_eq!((promise, &found), (Promise::Exact, &truth), "{method} {radius}");
                // Distinct rows only: tables may be smaller than planned, never much larger.
                assert!(
                    index.bytes() <= plan.bytes + 10_000,
                    "{method} {} {}",
                    index.bytes(),
                    plan.bytes
                );
            }
        }
    }
}

#[test]
fn small_radii_take_tables_and_wide_ones_the_scan() {
    let rows = uniform(64, 20_000, &mut Random::new(2));
    let sample = Sample::of(&rows).unwrap();
    assert!(is_tables(&plans(&costs(), &sample, &task(3))[0]));
    assert_eq!(plans(&costs(), &sample, &task(30))[0].index, Choice::Scan);
    // Tables that are to be built for one query cost more than they save.
    let once = Task { queries: Some(1), batch: 1, ..task(3) };
    assert_eq!(plans(&costs(), &sample, &once)[0].index, Choice::Scan);
    let often = Task { queries: Some(1_000_000), ..task(3) };
    assert!(is_tables(&plans(&costs(), &sample, &often)[0]));
}

#[test]
fn the_memory_is_a_bound() {
    let rows = uniform(64, 100_000, &mut Random::new(3));
    let sample = Sample::of(&rows).unwrap();
    let mut last = f64::INFINITY;
    for bytes_a_row in [0, 12, 20, 30, 50, 100] {
        let memory = bytes_a_row * rows.len() as u64;
        let plans = plans(&costs(), &sample, &Task { memory: Some(memory), ..task(3) });
        assert!(plans.iter().all(|plan| plan.bytes <= memory));
        assert!(plans[0].query_seconds <= last, "more memory is never slower");
        last = plans[0].query_seconds;
    }
}

#[test]
fn one_index_has_the_price_that_its_plan_has() {
    let mut random = Random::new(7);
    let (rows, queries, margins) = common::voted(30_000, 2000, 0.1, &mut random);
    let mut sample = Sample::of(&rows).unwrap();
    sample.look_at(&rows, Queries::with_margins(&queries, &margins).unwrap(), 3).unwrap();
    let task = Task { recall: 0.9, ..task(3) };
    let plans = plans(&costs(), &sample, &task);
    assert!(plans.iter().any(|plan| !plan.exact));
    for plan in plans {
        let Choice::Tables(method, build) = plan.index else { continue };
        // The memory is no bound to a price.
        let task = Task { memory: Some(1), ..task };
        assert_eq!(price(&costs(), &sample, &task, method, build), Some(plan));
    }
}

#[test]
fn what_is_scanned_costs_a_scan() {
    let rows = uniform(64, 2000, &mut Random::new(8));
    let sample = Sample::of(&rows).unwrap();
    for radius in [30, u32::MAX] {
        let plans = plans(&costs(), &sample, &task(radius));
        let scan = plans.iter().find(|plan| plan.index == Choice::Scan).unwrap();
        let build = Build { key_width: Some(11), stored: Some(Stored::Whole) };
        let method = "multi-2".parse().unwrap();
        let plan = price(&costs(), &sample, &task(radius), method, build).unwrap();
        assert_eq!((plan.exact, plan.query_seconds), (true, scan.query_seconds));
        assert!(plan.bytes > 0);
        let numbers = Build { stored: Some(Stored::Numbers), ..build };
        assert_eq!(price(&costs(), &sample, &task(radius), method, numbers), None);
    }
}

#[test]
fn skew_is_seen() {
    let mut random = Random::new(4);
    let (even, odd) = (uniform(64, 50_000, &mut random), skewed(64, 50_000, &mut random));
    let rows_met = |rows| plans(&costs(), &Sample::of(rows).unwrap(), &task(3))[0].work.rows;
    assert!(rows_met(&odd) > 5.0 * rows_met(&even));
}

#[test]
fn few_or_no_rows_are_planned_for() {
    for rows in [0, 1, 2, 5] {
        let rows = uniform(64, rows, &mut Random::new(5));
        let plans = plans(&costs(), &Sample::of(&rows).unwrap(), &task(3));
        assert!(!plans.is_empty());
    }
}

#[test]
fn a_recall_below_one_lets_weak_bits_in() {
    let mut random = Random::new(6);
    let (rows, queries, margins) = common::voted(30_000, 2000, 0.1, &mut random);
    let asked = Queries::with_margins(&queries, &margins).unwrap();
    let mut sample = Sample::of(&rows).unwrap();
    let wanted = Task { recall: 0.9, ..task(3) };
    let weak = |sample: &Sample| {
        plans(&costs(), sample, &wanted).into_iter().filter(|plan| !plan.exact).collect::<Vec<_>>()
    };
    assert!(weak(&sample).is_empty(), "nothing is known about weak bits yet");
    sample.look_at(&rows, asked, 3).unwrap();
    let weak = weak(&sample);
    assert!(!weak.is_empty());
    let mut truth = Answers::new();
    Scan::new(&rows).unwrap().within(asked, 3, &mut truth).unwrap();
    for plan in weak {
        let Choice::Tables(method, build) = plan.index else { panic!("{plan:?}") };
        let mut found = Answers::new();
        Tables::build(&rows, method, build).unwrap().within(asked, 3, &mut found).unwrap();
        let count = |answers: &Answers| answers.iter().map(<[_]>::len).sum::<usize>() as f64;
        let recall = count(&found) / count(&truth);
        assert!(
            plan.expected_recall >= 0.9 && (recall - plan.expected_recall).abs() < 0.02,
            "{plan:?} {recall}"
        );
    }
}

#[test]
fn this_machine_can_be_measured() {
    let costs = Costs::measure().unwrap();
    let far = costs.lines.last().unwrap();
    assert!(far.many > 0.0 && costs.call > 0.0 && costs.scan.iter().all(|scan| scan.near > 0.0));
    let text = serde_json::to_string(&costs).unwrap();
    assert_eq!(serde_json::from_str::<Costs>(&text).unwrap().kernel, costs.kernel);
}
