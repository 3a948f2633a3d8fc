//! A headless Chromium that a test tells what to do, in the DevTools protocol over a
//! pipe: no port is opened, and nothing but the page can be reached.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Until then anything has happened, on a machine that does other work as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `script/browser_setup.sh` looks for, too.
const PROGRAMS: [&str; 4] = [
    "chromium-headless-shell",
    "google-chrome-stable",
    "google-chrome",
    "chromium",
];

/// Where `script/browser_setup.sh` puts what it fetches.
pub fn fetched() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    root.join(target.map_or_else(|| PathBuf::from("target"), PathBuf::from))
        .join("browser")
}

/// The one named by `CHROME`, the fetched one, or the first on the path.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROME") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let of_path = PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    std::iter::once(fetched().join("chromium"))
        .chain(of_path)
        .find(|program| program.is_file())
}

/// A browser without a window; it ends with this.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    _profile: TempDir,
}

impl Browser {
    /// `None`, and a line that says so, where there is no browser.
    ///
    /// # Panics
    /// If there must be one (`WSBENCH_REQUIRE_BROWSER=1`), or it does not start.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            let remedy = "no Chromium here: ./script/browser_setup.sh fetches one, or set CHROME";
            let is_required = std::env::var_os("WSBENCH_REQUIRE_BROWSER").is_some_and(|v| v == "1");
            assert!(!is_required, "{remedy}");
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                // Past what keeps back the output of tests that pass.
                let line = format!("tests of report.html are not run: {remedy}\n");
                let _ = std::io::stderr().write_all(line.as_bytes());
            });
            return None;
        };
        let is_there = program.is_file();
        assert!(is_there, "CHROME: {} is no file", program.display());
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        if program.starts_with(fetched()) {
            command.env("LD_LIBRARY_PATH", fetched().join("lib"));
            if !Path::new("/etc/fonts").exists() {
                command.env("FONTCONFIG_PATH", fetched());
            }
        }
        // The pipes of the protocol are the descriptors 3 and 4.
        let mut process = command
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--font-render-hinting=none",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Some(Self {
            process,
            to,
            from,
            calls: 0,
            _profile: profile,
        })
    }

    /// An empty page of this width in pixels.
    pub fn page(&mut self, width: u32, is_dark: bool) -> Page<'_> {
        let target = self.call(
            None,
            "Target.createTarget",
            &json!({"url": "about:blank"}),
            &mut vec![],
        );
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call(None, "Target.attachToTarget", &attach, &mut vec![]);
        let mut page = Page {
            session: session["sessionId"].as_str().unwrap().to_owned(),
            browser: self,
            events: Vec::new(),
            folder: tempfile::tempdir().unwrap(),
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.resize(width, 900);
        let scheme = if is_dark { "dark" } else { "light" };
        page.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [
                {"name": "prefers-color-scheme", "value": scheme},
                // What scrolls has arrived at once.
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]}),
        );
        page
    }

    fn receive(&mut self) -> Value {
        let received = self.from.recv_timeout(PATIENCE);
        received.unwrap_or_else(|cause| panic!("the browser says nothing: {cause}"))
    }

    fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        events: &mut Vec<Value>,
    ) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut line = message.to_string().into_bytes();
        line.push(0);
        self.to.write_all(&line).unwrap();
        self.to.flush().unwrap();
        loop {
            let mut message = self.receive();
            if message["id"] == self.calls {
                let error = &message["error"];
                assert!(error.is_null(), "{method}: {error}");
                return message["result"].take();
            }
            events.push(message);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing else to do about it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One page, and everything that happened in it.
pub struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
    events: Vec<Value>,
    folder: TempDir,
}

impl Page<'_> {
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let session = Some(self.session.as_str());
        self.browser.call(session, method, params, &mut self.events)
    }

    /// Of the window, in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// From now on no page may run a script.
    pub fn without_script(&mut self) {
        let disabled = json!({"value": true});
        self.call("Emulation.setScriptExecutionDisabled", &disabled);
    }

    /// Opens a text as a file of its own and waits until it is there.
    pub fn open(&mut self, html: &str) {
        let path = self.folder.path().join("report.html");
        std::fs::write(&path, html).unwrap();
        let url = format!("file://{}", path.display());
        self.call("Page.navigate", &json!({ "url": url }));
        while !self.has_happened("Page.loadEventFired") {
            let event = self.browser.receive();
            self.events.push(event);
        }
    }

    fn has_happened(&self, method: &str) -> bool {
        self.events.iter().any(|event| event["method"] == method)
    }

    /// What an expression, or the promise of one, comes to.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        let mut result = self.call("Runtime.evaluate", &params);
        let thrown = &result["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        result["result"]["value"].take()
    }

    /// Whether an expression becomes true in time.
    pub fn expect(&mut self, expression: &str) {
        let waits = format!(
            "new Promise((done) => {{ const started = Date.now(); const look = () => \
             ({expression}) ? done(true) : Date.now() - started > 20000 ? done(false) : setTimeout(look, 10); look(); }})"
        );
        let is_true = self.eval(&waits) == true;
        assert!(is_true, "{expression}: {:?}", self.complaints());
    }

    /// A key, as a keyboard sends it.
    pub fn press(&mut self, key: &str, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": match key { "Enter" => 13, "Tab" => 9, _ => 0 }});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Moves the pointer there.
    pub fn point(&mut self, x: f64, y: f64) {
        // What scrolled before has been drawn by then, and hides no tip any more.
        self.eval(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        );
        let event = json!({"type": "mouseMoved", "x": x, "y": y});
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Errors, warnings and everything else that the console shows, and whatever was
    /// asked of a network or another file.
    pub fn complaints(&mut self) -> Vec<String> {
        // Whatever came before the answer to this has arrived.
        self.eval("1");
        let events = self.events.iter();
        let told = events.filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown"
                | "Runtime.consoleAPICalled"
                | "Log.entryAdded"
                | "Page.javascriptDialogOpening" => Some(event.to_string()),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    let is_page = url.starts_with("file://") && url.contains("/report.html");
                    (!is_page).then(|| url.to_owned())
                }
                _ => None,
            }
        });
        told.collect()
    }

    /// As it is printed.
    pub fn as_printed(&mut self) {
        self.call("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    }

    /// The whole page, or as much as fits, as PNG into the folder that
    /// `WSBENCH_SCREENSHOTS` names, for who wants to look at it.
    pub fn screenshot(&mut self, name: &str, is_whole: bool) {
        let Some(folder) = std::env::var_os("WSBENCH_SCREENSHOTS") else {
            return;
        };
        let params = json!({"captureBeyondViewport": is_whole});
        let shot = self.call("Page.captureScreenshot", &params);
        let text = shot["data"].as_str().unwrap();
        let png = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), png).unwrap();
    }
}
