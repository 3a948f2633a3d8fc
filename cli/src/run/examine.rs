//! The examination of the subjects: once a run, before the first trial, on a server
//! process of its own. What was found is kept in the run's folder, and decides
//! whether a subject is timed.

use crate::lines::one_line;
use crate::progress::{Spinner, note, say};
use crate::run::id::Utc;
use crate::run::trial::{Bench, remove_empty};
use crate::subject::Subject;
use crate::verify;
use std::collections::BTreeMap;
use std::time::Duration;
use wsbench_schema::{Examination, Level};

/// Stage of a failed trial whose subject did not pass.
const STAGE: &str = "verify";

/// Whether a subject may be timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It passed.
    Admitted,
    /// It did not, and the user wants to time it all the same; why it did not.
    Unverified(String),
    /// It may not.
    Refused {
        /// Stage of the failed trial.
        stage: &'static str,
        /// What happened.
        reason: String,
    },
}

/// Stage of a failed trial whose subject could not be built.
const UNBUILT: &str = "build";

impl Admission {
    /// Of a subject that could not be built.
    pub fn unbuilt(reason: &str) -> Self {
        Self::Refused {
            stage: UNBUILT,
            reason: reason.into(),
        }
    }

    /// Whether it is timed, verified or not.
    pub fn is_measured(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }

    /// Whether there is no program that would be timed.
    pub fn is_unbuilt(&self) -> bool {
        matches!(self, Self::Refused { stage: UNBUILT, .. })
    }
}

/// The subjects of a run that were examined.
#[derive(Debug, Default)]
pub struct Examinations(BTreeMap<String, Examination>);

impl Examinations {
    /// Whether a subject may be timed. It is examined now if that was not done with
    /// this very program. `None` if the user interrupted it.
    ///
    /// # Errors
    /// If the result cannot be saved.
    pub fn admit(
        &mut self,
        bench: &Bench<'_>,
        subject: &Subject,
        version: &str,
    ) -> anyhow::Result<Option<Admission>> {
        let unverified = bench.options.unverified || subject.is_reference();
        let program = subject.program_hash(bench.root);
        if let Some(known) = self.known(bench, subject, &program) {
            return Ok(Some(admission(known, unverified)));
        }
        let spinner = Spinner::new(format!("examining {}", subject.name));
        let id = subject.id(version.into());
        let examination = Examination::blank(id, program, Utc::now().unix_s);
        let examined = examine(bench, subject, examination);
        drop(spinner);
        if bench.interrupt.pressed() {
            return Ok(None);
        }
        let examination = match examined {
            Ok(examination) => examination,
            // Not a word about its answers: the next trial tries again.
            Err(error) => {
                let (stage, reason) = ("start", one_line(&format!("{error:#}")));
                return Ok(Some(Admission::Refused { stage, reason }));
            }
        };
        examination.save(bench.folder)?;
        let admission = admission(&examination, unverified);
        if !subject.is_direct() {
            tell(&examination, &admission);
        }
        self.0.insert(subject.name.clone(), examination);
        Ok(Some(admission))
    }

    /// The examination of this very program: of this session, or of the
    /// interrupted one that it goes on with.
    fn known(
        &mut self,
        bench: &Bench<'_>,
        subject: &Subject,
        program: &Option<String>,
    ) -> Option<&Examination> {
        let name = &subject.name;
        if !self.0.contains_key(name) && program.is_some() {
            match Examination::load(bench.folder, name) {
                Ok(Some(saved)) => _ = self.0.insert(name.clone(), saved),
                Ok(None) => {}
                Err(error) => note(format_args!("{name} is examined again: {error}")),
            }
        }
        self.0.get(name).filter(|known| known.binary == *program)
    }
}

/// Starts the server, asks it everything, and stops it.
fn examine(
    bench: &Bench<'_>,
    subject: &Subject,
    mut examination: Examination,
) -> anyhow::Result<Examination> {
    let log = bench.logs.join(format!("{}.verify.log", subject.name));
    let spec = bench.server(subject, 1, 0, log.clone())?;
    let server = verify::server::start_and_examine(subject, spec, &mut examination)?;
    if let Err(error) = server.stop() {
        let name = &subject.name;
        note(format_args!("{name}: cannot stop the server: {error:#}"));
    }
    remove_empty(&log);
    Ok(examination)
}

fn admission(examination: &Examination, unverified: bool) -> Admission {
    if examination.passed() {
        return Admission::Admitted;
    }
    let reason = reason(examination);
    match unverified {
        true => Admission::Unverified(reason),
        false => {
            let stage = STAGE;
            Admission::Refused { stage, reason }
        }
    }
}

/// `22/23 cases passed; echo/text of 0 bytes: expected ..., saw ...`: the failure
/// that explains the others, if there is one.
fn reason(examination: &Examination) -> String {
    let musts = examination.failures().filter(|f| f.level == Level::Must);
    // `false` is first: that of a server that is gone.
    let first = musts.min_by_key(|finding| finding.group != verify::server::GROUP);
    let first = first.map(|finding| {
        let (case, expected) = (finding.path(), &finding.expected);
        let seen = finding.seen.as_deref().unwrap_or("nothing");
        one_line(&format!("; {case}: expected {expected}, saw {seen}"))
    });
    let summary = examination.summary();
    format!("{summary} cases passed{}", first.unwrap_or_default())
}

/// `axum  verified 58/60 in 1.2 s`.
fn tell(examination: &Examination, admission: &Admission) {
    let name = &examination.subject.name;
    let verified = examination.verified();
    let seconds = Duration::from_nanos(examination.elapsed_ns).as_secs_f64();
    say(format_args!(
        "{name}  verified {verified} in {seconds:.1} s"
    ));
    if let Admission::Unverified(reason) = admission {
        note(format_args!(
            "{name} is timed although it failed verification: {reason}"
        ));
    }
}
