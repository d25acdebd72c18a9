//! Checks from outside whether a plugin keeps the promises of plugins, as hosts run it.
//!
//! A [`Kit`] gets a plugin, files that it reads, and graphs with its pipes. It runs every [check](CHECKS) for the
//! parts that the plugin's manifest lists. Each check runs in a process of its own with limits of memory and time.
//! So a plugin that crashes, hangs or takes all memory fails a check and ends nothing else. A part that there is
//! nothing to test with fails too.
//!
//! Use it in a plugin's own tests, which link the plugin:
//!
//! ```no_run
//! # mod my_plugin {
//! #     pub fn register(_: &mut dyn forebay_loader::Registrar) -> forebay_loader::Result<()> { Ok(()) }
//! # }
//! #[test]
//! fn conforms() {
//!     forebay_testkit::conformance::Kit::linked(my_plugin::register).data("tests/data").test("conforms");
//! }
//! ```
//!
//! To check a library, wherever it was built and in whatever language, use `forebay plugins test FILE.so`.

mod bench;
mod checks;
mod child;
mod heads;
mod report;
mod state;
mod subject;

use std::path::PathBuf;

use forebay_loader::{Error, Registrar, Registry, Result, Search, WorkerProgram, registry::FoundPlugin};

use self::subject::Subject;
pub use self::{
    checks::{CHECKS, Check},
    report::{Report, Row, Verdict},
    subject::Kind,
};

/// The most CPU time of one check, in seconds.
pub const SECONDS: u64 = 60;

/// Adds a linked plugin: the function `register` that `export_plugin!` writes.
pub type Register = fn(&mut dyn Registrar) -> Result<()>;

/// A plugin, and the data that it is tested with.
#[derive(Debug, Clone)]
pub struct Kit {
    plugin: Plugin,
    data: Vec<String>,
    graphs: Vec<String>,
    skip: Vec<String>,
    seconds: u64,
    /// What worker processes run; none where they run this program.
    worker: Option<WorkerProgram>,
    /// The path of the test that runs it; none where the whole program does.
    test: Option<&'static str>,
}

#[derive(Debug, Clone)]
enum Plugin {
    File(PathBuf, Search),
    Linked(Vec<Register>),
}

impl Kit {
    /// Tests a library. Other plugins, for the pipes of its graphs, are found by `search`.
    ///
    /// The program must call [`serve_if_worker`](forebay_loader::serve_if_worker) first, because it is its own
    /// worker. It is started again with the same arguments for each check, and must then call [`run`](Self::run)
    /// again.
    #[must_use]
    pub fn file(library: impl Into<PathBuf>, search: Search) -> Self {
        Self::new(Plugin::File(library.into(), search))
    }

    /// Tests a plugin that is linked into a test.
    #[must_use]
    pub fn linked(register: Register) -> Self {
        Self::new(Plugin::Linked(vec![register]))
    }

    fn new(plugin: Plugin) -> Self {
        Self {
            plugin,
            data: Vec::new(),
            graphs: Vec::new(),
            skip: Vec::new(),
            seconds: SECONDS,
            worker: None,
            test: None,
        }
    }

    /// Adds another linked plugin, whose pipes the graphs need.
    #[must_use]
    pub fn with(mut self, register: Register) -> Self {
        if let Plugin::Linked(all) = &mut self.plugin {
            all.push(register);
        }
        self
    }

    /// Adds a file, a folder of files, or the URL of a file for a store. Decoders, and pipes that open files, read
    /// the files with their extension or first bytes.
    #[must_use]
    pub fn data(mut self, path: impl Into<String>) -> Self {
        self.data.push(path.into());
        self
    }

    /// Adds a graph, in one line. It tests each pipe of the plugin that is in it.
    #[must_use]
    pub fn graph(mut self, line: impl Into<String>) -> Self {
        self.graphs.push(line.into());
        self
    }

    /// Leaves out one part of the plugin, by its name, for example one that needs a server.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>) -> Self {
        self.skip.push(name.into());
        self
    }

    /// Sets the CPU seconds for each check, instead of [`SECONDS`].
    #[must_use]
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds.clamp(1, 86_400);
        self
    }

    /// Sets the program of worker processes. Unless set, they run this program.
    #[must_use]
    pub fn worker(mut self, program: impl Into<WorkerProgram>) -> Self {
        self.worker = Some(program.into());
        self
    }

    /// Runs all checks, from within the test with this path, as `cargo test` shows it.
    ///
    /// # Panics
    /// With the report, if the plugin fails a check.
    pub fn test(mut self, path: &'static str) {
        self.test = Some(path);
        let report = match self.run() {
            Ok(report) => report,
            Err(error) => panic!("{error}"),
        };
        assert!(report.passed(), "\n{report}");
    }

    /// Runs all checks.
    ///
    /// # Errors
    /// If the file is no plugin, or was refused. `Invalid` for data and graphs that no part of the plugin takes.
    pub fn run(&self) -> Result<Report> {
        let registry = self.registry()?;
        let record = self.record(&registry)?;
        let subjects = subject::all(self, &registry, record)?;
        if let Some(task) = child::Task::given() {
            child::serve(self, &subjects, &task);
        }
        let mut rows = Vec::new();
        let mut loads = true;
        for (at, subject) in subjects.iter().enumerate() {
            let checks: Vec<&Check> = CHECKS.iter().filter(|check| check.kind == subject.kind()).collect();
            if let Subject::Untested { why, .. } = subject
                && loads
            {
                rows.push(Row::new(subject, "data", Verdict::Untested, why.clone()));
            }
            let mut over = false;
            for (number, check) in checks.into_iter().enumerate() {
                let (verdict, mut detail) = match (loads, over) {
                    (false, _) => (Verdict::Skipped, "it does not load".to_owned()),
                    (_, true) => (Verdict::Skipped, "after that".to_owned()),
                    _ => child::ask(self, at, check.name)?,
                };
                loads &= verdict.is_good() || check.name != checks::LAYOUT.name;
                // Of a graph that does not run there is nothing more to say.
                let never_runs = verdict == Verdict::Failed && number == 0 && check.kind == Kind::Pipe;
                if never_runs && subject.is_a_guess() {
                    detail.push_str("; name a graph that it works in with `--graph`");
                }
                over |= verdict == Verdict::Died || never_runs;
                rows.push(Row::new(subject, check.name, verdict, detail));
            }
        }
        Ok(Report { plugin: record.label(), file: record.file(), rows })
    }

    /// All plugins there are, read anew.
    fn registry(&self) -> Result<Registry> {
        match &self.plugin {
            Plugin::File(library, search) => Registry::new(search.clone().first(library)),
            Plugin::Linked(all) => {
                Registry::linked(|registrar| all.iter().try_for_each(|register| register(registrar)))
            }
        }
    }

    /// The one that is tested.
    fn record<'a>(&self, registry: &'a Registry) -> Result<&'a FoundPlugin> {
        let Plugin::File(library, _) = &self.plugin else {
            return registry.plugins().first().ok_or_else(|| Error::invalid("no plugin was registered"));
        };
        let library = std::path::absolute(library)?;
        let found = registry.plugins().iter().find(|record| record.path() == Some(&library));
        found.ok_or_else(|| {
            let refusal = registry.refusals().iter().find(|refusal| refusal.path == library);
            let reason = refusal.map(|refusal| refusal.reason.clone());
            reason.unwrap_or_else(|| Error::invalid("no such file")).context("plugin", library.display())
        })
    }
}
