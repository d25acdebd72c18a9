//! Maps that are closures of the program.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_core::Context;
use forebay_loader::{Error, ErrorKind, Executor, Registry, Sample, Value};
use forebay_tests::{Setting, build, error_of, line, read, registry, run, within_deadline};

/// With the map `double`, which fails at 13 and panics at 17.
fn with_double() -> Registry {
    let double = |sample: &mut Sample, _: &Context<'_>| {
        let value = sample.get("value").and_then(Value::as_i64).unwrap();
        assert_ne!(value, 17, "no seventeen");
        if value == 13 {
            return Err(Error::invalid("no thirteen"));
        }
        sample.set("value", 2 * value);
        Ok(())
    };
    registry().with_map("double", double).unwrap()
}

#[test]
fn a_closure_gives_the_same_on_all_threads_also_beside_processes() {
    within_deadline(|| {
        let registry = with_double();
        let graph = |on: &str| {
            line(&format!("range 500 | double on_error=skip {on} | increment | shuffle 50 | batch 7"))
        };
        let truth = run(&mut build(&graph(""), &registry, Setting::INLINE).unwrap(), 0).unwrap();
        assert_eq!(truth.samples, 498_u64.div_ceil(7) as usize);
        for (executor, on) in [
            (Executor::Threads(1), ""),
            (Executor::Threads(4), ""),
            (Executor::Threads(2), "on=threads"),
            (Executor::Processes(2), "on=threads"),
        ] {
            let mut loader = build(&graph(on), &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            let found = run(&mut loader, 0).unwrap();
            assert_eq!(
                (found.samples, found.digest),
                (truth.samples, truth.digest.clone()),
                "{executor} {on}"
            );
        }
    });
}

#[test]
fn a_closure_is_refused_in_a_process_by_its_name() {
    let registry = with_double();
    for (text, executor) in [
        ("range 9 | double", Executor::Processes(2)),
        ("range 9 | increment | double | batch 3", Executor::Processes(1)),
        ("range 9 | double on=process", Executor::Threads(2)),
        ("range 9 | double unordered=true | increment unordered=true on=process", Executor::Threads(2)),
    ] {
        let error = build(&line(text), &registry, Setting { executor, ..Setting::INLINE }).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("`double` is a closure") && text.contains("on=threads"), "{text}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn its_errors_and_panics_name_sample_and_pipe() {
    within_deadline(|| {
        let registry = with_double();
        for (text, wanted) in
            [("range 30 | double", "no thirteen"), ("range 30 start=14 | double", "no seventeen")]
        {
            for executor in [Executor::Inline, Executor::Threads(2)] {
                let (error, _) = error_of(&line(text), &registry, Setting { executor, ..Setting::INLINE });
                let error = error.to_string();
                assert!(error.contains(wanted) && error.contains("pipe double"), "{error}");
                assert!(error.contains("range#") && error.contains("a closure"), "{error}");
            }
        }
    });
}

#[test]
fn a_name_that_is_taken_is_refused() {
    for name in ["batch", "double"] {
        let error = with_double().with_map(name, |_, _| Ok(())).err().unwrap().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// With `triple`, which gives each number three times, none of 4, and fails at 7, and `odd`, which fails at 9.
fn with_more() -> Registry {
    let number = |sample: &Sample| sample.get("value").and_then(Value::as_i64).unwrap();
    let triple = move |sample: Sample, _: &Context<'_>| match number(&sample) {
        4 => Ok(Vec::new()),
        7 => Err(Error::invalid("no seven")),
        _ => Ok(vec![sample; 3]),
    };
    let odd = move |sample: &Sample, _: &Context<'_>| match number(sample) {
        9 => Err(Error::invalid("no nine")),
        number => Ok(number % 2 == 1),
    };
    with_double().with_flat_map("triple", triple).unwrap().with_filter("odd", odd).unwrap()
}

#[test]
fn closures_that_give_more_or_fewer_are_the_same_everywhere_and_after_a_resume() {
    within_deadline(|| {
        let registry = with_more();
        for (text, count) in
            [("range 7 | triple", 18), ("range 9 | odd | triple on_error=skip | shuffle 4", 9)]
        {
            let graph = line(text);
            let truth = read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
            assert!(truth.0.len() == count && truth.1.is_none(), "{text}: {truth:?}");
            let unlike: std::collections::HashSet<_> = truth.0.iter().collect();
            assert_eq!(unlike.len(), count, "each has a uid of its own");
            for setting in [Setting { chunk: Some(1), ..Setting::threads(3) }, Setting::threads(2)] {
                assert_eq!(
                    read(build(&graph, &registry, setting).unwrap().epoch(0)),
                    truth,
                    "{text}: {setting:?}"
                );
            }
            for taken in 0..count {
                let mut loader = build(&graph, &registry, Setting::threads(2)).unwrap();
                let mut epoch = loader.epoch(0);
                epoch.by_ref().take(taken).for_each(drop);
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                assert_eq!(
                    read(loader.resume(&snapshot).unwrap()).0,
                    truth.0[taken..],
                    "{text}: after {taken}"
                );
            }
        }
        let graph = line("range 9 | odd on=threads | increment on=process");
        let setting = Setting { executor: Executor::Processes(1), ..Setting::INLINE };
        assert_eq!(read(build(&graph, &registry, setting).unwrap().epoch(0)).0.len(), 4);
        for (text, wrong) in [("range 10 | triple", "no seven"), ("range 10 | odd", "no nine")] {
            let (_, error) = read(build(&line(text), &registry, Setting::threads(2)).unwrap().epoch(0));
            assert!(error.unwrap().to_string().contains(wrong), "{text}");
        }
    });
}

#[test]
fn what_closures_draw_is_the_same_everywhere_and_another_in_each_epoch() {
    within_deadline(|| {
        let draw = |sample: &mut Sample, cx: &Context<'_>| {
            let mut rng = cx.rng(sample.uid());
            sample.set("drawn", rng.below(1 << 40).cast_signed());
            Ok(())
        };
        let half = |sample: &Sample, cx: &Context<'_>| Ok(cx.rng(sample.uid()).f64() < 0.5);
        let registry = registry().with_map("draw", draw).unwrap().with_filter("half", half).unwrap();
        let graph = line("range 200 | draw on=threads | half on=threads | batch 7");
        let truth = [0, 1].map(|epoch| read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(epoch)));
        assert_ne!(truth[0].0, truth[1].0);
        for executor in [Executor::Threads(1), Executor::Threads(4), Executor::Processes(2)] {
            let setting = Setting { executor, epochs: 2, ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            for (epoch, wanted) in (0..).zip(&truth) {
                assert_eq!(read(loader.epoch(epoch)).0, wanted.0, "{executor}, epoch {epoch}");
            }
        }
    });
}
