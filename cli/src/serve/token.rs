//! A token that nobody guesses.

use anyhow::Context as _;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;

/// 128 random bits, in hexadecimal digits.
pub fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom for a token")?;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (super::random().unwrap(), super::random().unwrap());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
