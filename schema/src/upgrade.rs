//! Files of earlier versions, made into what this program reads before they are
//! parsed. `tests/versions/` keeps one of each.

use serde_json::Value;

/// What is not known of an old file, as the harness says it of what no kernel told.
const UNKNOWN: &str = "unknown";

/// A file of version `from`, step by step, as the newest version would have it.
#[must_use]
pub fn upgraded(mut file: Value, from: u32) -> Value {
    if from < 2 {
        names_its_host(&mut file);
    }
    file["schema"] = crate::SCHEMA_VERSION.into();
    file
}

/// Version 1 did not name the host of a machine.
fn names_its_host(file: &mut Value) {
    let machine = file.get_mut("machine").and_then(Value::as_object_mut);
    if let Some(machine) = machine {
        machine.insert("host".to_owned(), UNKNOWN.into());
    }
}
