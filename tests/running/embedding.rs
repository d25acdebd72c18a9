//! A loader inside another program: an epoch that nobody borrows, waits that end, wakers, plugins that workers have too, memory of the program's
//! own, and errors that keep what they came from.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use forebay_loader::{
    Buffer, Error, ErrorKind, Executor, Loader, Registry, Result, Sample, Search, Value, WorkerProgram,
};
use forebay_tests::{
    ALL, Gate, Setting, build, builder, command, line, linked, plugin_file, read, registry, within_deadline,
    worker,
};
use futures_core::Stream;

const GRAPH: &str = "range 500 | shuffle 50 | increment | batch 7";

/// Every executor, and worker processes.
fn places() -> impl Iterator<Item = Executor> {
    ALL.into_iter().chain([Executor::Processes(2)])
}

/// Wakes a thread that parks.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Takes samples as a task of an async program does.
fn polled(loader: &mut Loader) -> Option<Result<Sample>> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    loop {
        match loader.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(next) => return next,
            Poll::Pending => thread::park(),
        }
    }
}

/// Takes samples of it as of any stream.
fn streamed(loader: &mut Loader) -> Option<Result<Sample>> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    loop {
        match Stream::poll_next(Pin::new(loader), &mut Context::from_waker(&waker)) {
            Poll::Ready(next) => return next,
            Poll::Pending => thread::park(),
        }
    }
}

/// Asks again and again.
fn tried(loader: &mut Loader) -> Option<Result<Sample>> {
    loop {
        match loader.try_next() {
            Poll::Ready(next) => return next,
            Poll::Pending => thread::yield_now(),
        }
    }
}

fn waited(loader: &mut Loader) -> Option<Result<Sample>> {
    loop {
        if let Poll::Ready(next) = loader.next_within(Duration::from_micros(50)) {
            return next;
        }
    }
}

#[test]
fn an_epoch_goes_on_without_being_borrowed() {
    within_deadline(|| {
        let (registry, graph) = (registry(), line(GRAPH));
        let truth = read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
        assert_eq!((truth.0.len(), truth.1.is_none()), (72, true));
        for executor in places() {
            for (name, next) in [
                ("next_sample", Loader::next_sample as fn(&mut Loader) -> Option<Result<Sample>>),
                ("poll_next", polled),
                ("stream", streamed),
                ("try_next", tried),
                ("next_within", waited),
            ] {
                let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
                assert!(next(&mut loader).is_none(), "{name} on {executor}: nothing was begun");
                assert!(!loader.snapshot().unwrap().ended, "{name} on {executor}");
                loader.begin(0);
                let first = read((0..30).filter_map(|_| next(&mut loader)));
                let snapshot = loader.snapshot().unwrap();
                let rest = read(std::iter::from_fn(|| next(&mut loader)));
                assert_eq!([first.0, rest.0.clone()].concat(), truth.0, "{name} on {executor}");
                assert!(next(&mut loader).is_none() && loader.snapshot().unwrap().ended);
                drop(loader.resume(&snapshot).unwrap());
                assert_eq!(read(std::iter::from_fn(|| next(&mut loader))), rest, "{name} on {executor}");
            }
        }
    });
}

#[test]
fn whoever_does_not_wait_is_told_that_nothing_came_and_woken_when_it_does() {
    within_deadline(|| {
        let registry = registry();
        for executor in places() {
            let gate = Gate::new();
            let graph = line(&format!("range 9 | rogue_stream fault=pending at=3 gate='{}'", gate.path()));
            let setting = Setting { executor, chunk: Some(1), ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            loader.begin(0);
            for _ in 0..3 {
                loader.next_sample().unwrap().unwrap();
            }
            let waker = Waker::from(Arc::new(Parked(thread::current())));
            let mut cx = Context::from_waker(&waker);
            assert!(
                loader.poll_next(&mut cx).is_pending(),
                "a sample came through a closed gate on {executor}"
            );
            assert!(loader.next_within(Duration::from_millis(1)).is_pending(), "{executor}");
            assert!(loader.poll_next(&mut cx).is_pending(), "{executor}");
            drop(gate.arrival());
            let next = loop {
                match loader.poll_next(&mut cx) {
                    Poll::Ready(next) => break next,
                    Poll::Pending => thread::park(),
                }
            };
            next.unwrap().unwrap();
            assert_eq!(read(std::iter::from_fn(|| loader.next_sample())).0.len(), 5, "{executor}");
        }
    });
}

#[test]
fn a_stop_wakes_a_task_that_waits() {
    within_deadline(|| {
        let registry = registry();
        for executor in places() {
            let gate = Gate::new();
            let graph = line(&format!("range 9 | rogue_stream fault=pending at=0 gate='{}'", gate.path()));
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            loader.begin(0);
            let stopper = loader.stopper();
            let other = thread::spawn(move || {
                let _arrived = gate.arrival();
                stopper.stop();
            });
            let error = polled(&mut loader).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{executor}: {error}");
            other.join().unwrap();
        }
    });
}

/// The pipes of the workspace, and those linked into this program and its workers.
fn linked_registry() -> Registry {
    let search = Search::nowhere().first(plugin_file("forebay-pipes"));
    Registry::with_linked_in_workers(search, linked::register).unwrap()
}

#[test]
fn linked_plugins_run_in_worker_processes_that_have_them() {
    within_deadline(|| {
        let registry = linked_registry();
        let graph = line("range 64 | signed");
        let read_by = |executor| -> Vec<(i64, u32)> {
            let setting = Setting { executor, chunk: Some(4), ..Setting::INLINE };
            let mut loader = build(&graph, &registry, setting).unwrap();
            let number = |sample: &Sample, name: &str| sample.get(name).and_then(Value::as_i64).unwrap();
            let pair = |sample: Sample| {
                (number(&sample, "value"), number(&sample, "process").cast_unsigned() as u32)
            };
            loader.epoch(0).map(|sample| pair(sample.unwrap())).collect()
        };
        let here = read_by(Executor::Inline);
        assert!(here.iter().all(|&(_, process)| process == std::process::id()));
        let there = read_by(Executor::Processes(2));
        assert!(there.iter().all(|&(_, process)| process != std::process::id()));
        let values = |pairs: &[(i64, u32)]| pairs.iter().map(|&(value, _)| value).collect::<Vec<_>>();
        assert_eq!(values(&here), values(&there));
    });
}

#[test]
fn a_worker_without_a_linked_plugin_is_refused_by_the_plugin_s_name() {
    within_deadline(|| {
        let graph = line("range 9 | signed");
        let setting = Setting { executor: Executor::Processes(1), ..Setting::INLINE };
        let mut loader =
            builder(&graph, setting).worker(command::command()).build(&linked_registry()).unwrap();
        let error = loader.epoch(0).next().unwrap().unwrap_err().to_string();
        assert!(error.contains("lacks forebay-tests") && error.contains("serve_if_worker_with"), "{error}");
    });
}

#[test]
fn a_worker_program_has_arguments_and_variables() {
    within_deadline(|| {
        let (registry, graph) = (registry(), line("range 9 | increment"));
        let setting = Setting { executor: Executor::Processes(1), ..Setting::INLINE };
        // The shell runs the worker only as it is told to.
        let script = "[ \"$1\" = one ] && [ \"$TWO\" = two ] && exec \"$0\"";
        let program = |variable: &str| {
            WorkerProgram::new("/bin/sh")
                .args(["-c", script])
                .args([worker()])
                .args(["one"])
                .env("TWO", variable)
        };
        let mut loader = builder(&graph, setting).worker(program("two")).build(&registry).unwrap();
        assert_eq!(read(loader.epoch(0)).0.len(), 9);
        let mut loader = builder(&graph, setting).worker(program("three")).build(&registry).unwrap();
        let error = loader.epoch(0).next().unwrap().unwrap_err();
        assert_eq!(error.get("worker"), Some("/bin/sh"), "{error}");
    });
}

#[test]
fn an_error_keeps_its_cookie_on_its_way_out_of_threads_and_processes() {
    within_deadline(|| {
        let registry = linked_registry();
        for executor in places() {
            for graph in ["range 40 | signed fail=13", "range 40 | signed fail=13 | shuffle 4 | batch 5"] {
                let mut loader =
                    build(&line(graph), &registry, Setting { executor, ..Setting::INLINE }).unwrap();
                let error: Error = loader.epoch(0).find_map(Result::err).unwrap();
                assert_eq!(error.cookie(), Some(linked::COOKIE), "{executor}: {error}");
                assert!(!error.to_string().contains("cookie") && error.get("pipe").is_some(), "{error}");
            }
        }
    });
}

#[test]
fn output_lies_in_memory_of_the_program_s_own_and_may_be_written() {
    within_deadline(|| {
        let registry = registry();
        let graph = line("range 4096 | batch 1024");
        for executor in ALL {
            let asked = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&asked);
            let builder = builder(&graph, Setting { executor, ..Setting::INLINE }).memory(move |len| {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut memory = forebay_core::BufferMut::zeroed(len + 7);
                memory[len] = 77; // Behind what is given out.
                Some(memory)
            });
            let mut loader = builder.build(&registry).unwrap();
            let mut buffers = 0;
            for sample in loader.epoch(0) {
                let mut sample = sample.unwrap();
                let data: Buffer = sample.take("value").unwrap().as_tensor().unwrap().data().clone();
                drop(sample);
                let place = data.as_ptr();
                let shared = data.clone();
                let data = data.try_into_mut().unwrap_err();
                drop(shared);
                let mut data = data.try_into_mut().unwrap();
                assert_eq!((data.as_ptr(), data.len()), (place, 8192), "{executor}");
                data[0] = 1;
                buffers += 1;
            }
            assert_eq!(buffers, 4, "{executor}");
            assert!(asked.load(Ordering::Relaxed) >= 4, "{executor}");
        }
    });
}
