//! What a program has of its own: closures, and plugins that are linked into it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_core::{Context, Registrar};
use forebay_loader::{Error, ErrorKind, Executor, Registry, Result, Sample, Search, Value};
use forebay_tests::{
    PLUGINS, Setting, build, digest, error_of, line, plugin_file, read, registry, run, within_deadline,
};

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

/// A plugin that is linked into this program: a source and a stream with state.
mod own {
    use forebay_core::{
        Context, DataPipe, Io, Key, NoOptions, PipeInfo, Result, Sample, Source, State, StateExt, Step,
        Stream, Value,
    };

    /// The Fibonacci numbers up to 1,000.
    pub(super) struct Fibonacci(i64, i64);

    impl DataPipe for Fibonacci {
        const INFO: PipeInfo =
            PipeInfo { name: "fibonacci", summary: "Sums of the last two", ..PipeInfo::DEFAULT };
        type Options = NoOptions;

        fn new(_: NoOptions) -> Result<Self> {
            Ok(Self(0, 1))
        }
    }

    impl Source for Fibonacci {
        fn reset(&mut self, _: &Context) -> Result<()> {
            (self.0, self.1) = (0, 1);
            Ok(())
        }

        fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
            let value = self.0;
            (self.0, self.1) = (self.1, self.0 + self.1);
            let mut sample = Sample::new(self.1.cast_unsigned(), Key::default());
            sample.set("value", value);
            Ok((value <= 1000).then_some(sample))
        }

        fn state(&self) -> Result<State> {
            State::json(1, &(self.0, self.1))
        }

        fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
            (self.0, self.1) = state.parse(1)?;
            Ok(())
        }
    }

    /// The sum of all values so far. It is called as a map of pictures is, of a plugin that is found.
    pub(super) struct Total(i64);

    impl DataPipe for Total {
        const INFO: PipeInfo =
            PipeInfo { name: "normalize", summary: "The sum of all values so far", ..PipeInfo::DEFAULT };
        type Options = NoOptions;

        fn new(_: NoOptions) -> Result<Self> {
            Ok(Self(0))
        }
    }

    impl Stream for Total {
        fn reset(&mut self, _: &Context) -> Result<()> {
            self.0 = 0;
            Ok(())
        }

        fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
            while io.room() > 0 {
                let Some(mut sample) = io.pop(0) else {
                    return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
                };
                self.0 += sample.get("value").and_then(Value::as_i64).unwrap();
                sample.set("total", self.0);
                io.push(&mut sample);
            }
            Ok(Step::Ready)
        }

        fn state(&self) -> Result<State> {
            State::json(1, &self.0)
        }

        fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
            self.0 = state.parse(1)?;
            Ok(())
        }
    }

    forebay_core::export_plugin! { sources: [Fibonacci], streams: [Total] }
}

/// What the workspace has, and what `register` links.
fn with_linked(register: impl FnOnce(&mut dyn Registrar) -> Result<()>) -> Registry {
    Registry::with_linked(everything(), register).unwrap()
}

fn everything() -> Search {
    let files = PLUGINS.iter().rev().map(|name| plugin_file(name));
    files.fold(Search::nowhere(), |search, file| search.first(file))
}

#[test]
fn a_linked_plugin_with_state_runs_beside_those_that_are_found() {
    within_deadline(|| {
        let registry = with_linked(own::register);
        let graph = line("fibonacci | increment | shuffle 5 | normalize | increment @more | batch 3");
        let truth = read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
        assert!(truth.0.len() == 6 && truth.1.is_none(), "{truth:?}");
        for executor in [Executor::Inline, Executor::Threads(3), Executor::Processes(2)] {
            let setting = Setting { executor, chunk: Some(1), ..Setting::INLINE };
            for taken in 0..=truth.0.len() {
                let mut loader = build(&graph, &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                let mut found: Vec<_> =
                    epoch.by_ref().take(taken).map(|sample| digest(&sample.unwrap())).collect();
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                found.extend(read(loader.resume(&snapshot).unwrap()).0);
                assert_eq!(found, truth.0, "{executor} after {taken}");
            }
        }
    });
}

#[test]
fn what_is_linked_is_refused_in_a_process_that_would_miss_it() {
    let setting = Setting { executor: Executor::Processes(1), ..Setting::INLINE };
    let refusal = |text: &str, registry: &Registry| {
        let error = build(&line(text), registry, setting).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let registry = with_linked(own::register);
    for pipe in ["fibonacci", "forebay-tests:fibonacci"] {
        let error = refusal(&format!("{pipe} on=process | batch 3"), &registry);
        assert!(
            error.contains(&format!("`{pipe}` belongs to forebay-tests")) && error.contains("on=threads"),
            "{error}"
        );
    }
    // Its own pipes are elsewhere, and its decoders would be missing.
    let registry = with_linked(forebay_json::register);
    assert_eq!(
        read(build(&line("range 9 | decode"), &registry, Setting::threads(2)).unwrap().epoch(0)).0.len(),
        9
    );
    let error = refusal("range 9 | decode", &registry);
    assert!(error.contains("forebay-json") && error.contains("decoders"), "{error}");
}

#[test]
fn what_is_linked_is_not_kept_away() {
    within_deadline(|| {
        let isolated = |policy: &str| {
            Registry::with_linked(everything().isolation(policy.parse().unwrap()), own::register)
        };
        let graph = line("fibonacci | increment | batch 3");
        let truth = read(build(&graph, &with_linked(own::register), Setting::INLINE).unwrap().epoch(0));
        // That of all is of those that are found.
        let registry = isolated("process").unwrap();
        assert!(registry.plugin_of("increment").unwrap().is_withheld());
        let found = read(build(&graph, &registry, Setting::threads(2)).unwrap().epoch(0));
        assert_eq!((found.0, found.1.is_none()), (truth.0, true));
        let error = isolated("forebay-tests=process").err().unwrap();
        assert!(error.message().contains("forebay-tests") && error.message().contains("linked"), "{error}");
    });
}
