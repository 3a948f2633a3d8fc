//! What makes figures vary: nothing here stops a run.

use super::{Amount, Check, Noise, Side, Status};

/// From here on the hypervisor's share of the CPUs is seen in the figures.
const STEAL_PERMILLE: u64 = 10;
/// From here on that of other programs is.
const BUSY_PERMILLE: u64 = 50;

pub fn checks(found: &Noise) -> Vec<Check> {
    vec![
        governor(found),
        turbo(found),
        share(
            "CPU time taken by the hypervisor",
            found.steal_permille,
            STEAL_PERMILLE,
            "use a machine of your own, more rounds, and CPU time a message in place of TPS",
        ),
        share(
            "CPU time used by other programs",
            found.busy_permille,
            BUSY_PERMILLE,
            "stop what else runs (see: top), or use more rounds",
        ),
    ]
}

fn text(text: impl Into<String>) -> Amount {
    Amount::Text(text.into())
}

fn governor(found: &Noise) -> Check {
    let name = "CPU frequency governor";
    match found.governor.as_deref() {
        None => Check::unknown(name, Side::Machine, text("performance")),
        Some(governor) => {
            let check = Check::new(name, Side::Machine, text(governor), text("performance"));
            match governor {
                "performance" => check,
                _ => check.with(Status::Advice, "cpupower frequency-set -g performance"),
            }
        }
    }
}

fn turbo(found: &Noise) -> Check {
    let name = "CPU turbo";
    let check = |turbo: &str| Check::new(name, Side::Machine, text(turbo), text("off"));
    match found.turbo {
        None => Check::unknown(name, Side::Machine, text("off")),
        Some(false) => check("off"),
        Some(true) => check("on").with(
            Status::Advice,
            "the clock falls as the machine warms up: echo 1 > \
             /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost",
        ),
    }
}

fn share(name: &'static str, found: u64, most: u64, remedy: &str) -> Check {
    let percent = |permille: u64| text(format!("{}.{} %", permille / 10, permille % 10));
    let needed = text(format!("under {}", percent(most)));
    let check = Check::new(name, Side::Machine, percent(found), needed);
    match found >= most {
        true => check.with(Status::Advice, remedy),
        false => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_with_a_steady_clock_has_nothing_to_be_said() {
        let quiet = Noise {
            governor: Some("performance".into()),
            turbo: Some(false),
            steal_permille: 9,
            busy_permille: 49,
        };
        assert!(
            checks(&quiet)
                .iter()
                .all(|check| check.status == Status::Ok)
        );
    }

    #[test]
    fn each_source_of_noise_is_named_with_what_helps() {
        let noisy = Noise {
            governor: Some("powersave".into()),
            turbo: Some(true),
            steal_permille: 10,
            busy_permille: 523,
        };
        let checks = checks(&noisy);
        assert!(checks.iter().all(|check| check.status == Status::Advice));
        assert!(checks.iter().all(|check| check.remedy.is_some()));
        assert_eq!(checks[3].found, text("52.3 %"));
        assert_eq!(checks[3].needed, text("under 5.0 %"));
    }

    #[test]
    fn what_the_kernel_hides_is_unknown_and_not_good() {
        let checks = checks(&Noise::default());
        assert_eq!(checks[0].status, Status::Unknown);
        assert_eq!(checks[1].status, Status::Unknown);
    }
}
