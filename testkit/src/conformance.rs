//! Whether a plugin keeps what plugins promise: checked from outside, as hosts run it.
//!
//! A [`Kit`] is told of a plugin, of files that it reads, and of graphs with its pipes, and runs every [check](CHECKS) that fits
//! what the plugin's manifest says it has. Each runs in a process of its own with limits of memory and time, so that a plugin that
//! crashes, hangs or takes all memory fails a check and ends nothing else. What has nothing to be tested with fails as well.
//!
//! In a plugin's own tests, in which the plugin is linked in:
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
//! Of a library, wherever it was built and in whatever language: `forebay plugins test FILE.so`.

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

/// How long one check may keep the processor busy, in seconds.
pub const SECONDS: u64 = 60;

/// Adds a plugin that is linked in: the function `register` that `export_plugin!` writes.
pub type Register = fn(&mut dyn Registrar) -> Result<()>;

/// A plugin, and what it is tested with.
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
    /// For a library. Other plugins, for the pipes of its graphs, are found where `search` says.
    ///
    /// The program must call [`serve_if_worker`](forebay_loader::serve_if_worker) first of all: it is its own worker. And
    /// what it was called with leads it to [`run`](Self::run) again, since it is called so for each check.
    #[must_use]
    pub fn file(library: impl Into<PathBuf>, search: Search) -> Self {
        Self::new(Plugin::File(library.into(), search))
    }

    /// For a plugin that is linked into a test.
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

    /// Beside another plugin that is linked in, whose pipes the graphs need.
    #[must_use]
    pub fn with(mut self, register: Register) -> Self {
        if let Plugin::Linked(all) = &mut self.plugin {
            all.push(register);
        }
        self
    }

    /// With a file, a folder of files, or the URL of a file for a store. Decoders and pipes that open files read those whose
    /// extension or first bytes are theirs.
    #[must_use]
    pub fn data(mut self, path: impl Into<String>) -> Self {
        self.data.push(path.into());
        self
    }

    /// With a graph, in one line. Each pipe in it that the plugin has is tested by it.
    #[must_use]
    pub fn graph(mut self, line: impl Into<String>) -> Self {
        self.graphs.push(line.into());
        self
    }

    /// Without one of the plugin's things, by its name: one that needs a server, say.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>) -> Self {
        self.skip.push(name.into());
        self
    }

    /// With so many seconds of the processor for each check, in place of [`SECONDS`].
    #[must_use]
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds.clamp(1, 86_400);
        self
    }

    /// Worker processes run `program`. Unless set, they run this one.
    #[must_use]
    pub fn worker(mut self, program: impl Into<WorkerProgram>) -> Self {
        self.worker = Some(program.into());
        self
    }

    /// Runs all checks, from within the test with this path, as `cargo test` shows it.
    ///
    /// # Panics
    /// With the report, when the plugin failed one.
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
    /// Those of finding the plugin: it is no plugin, or was refused. `Invalid` for data and graphs that none of its things take.
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
