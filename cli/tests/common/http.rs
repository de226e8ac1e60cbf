//! The program as a service, and a small HTTP client of our own: one that can also be slow, rude and wrong.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses its part of it")]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

use crate::common::Place;

/// Whoever waits longer than this waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

pub const JSON: &str = "application/json";
pub const LINES: &str = "application/x-ndjson";
pub const PROBLEM: &str = "application/problem+json";

/// What the server answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What is in a good answer.
    #[track_caller]
    pub fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// What is in the lines of a good answer.
    #[track_caller]
    pub fn good_lines(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some(LINES));
        self.lines()
    }

    /// What the problem is; every problem looks the same.
    #[track_caller]
    pub fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some(PROBLEM), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["type"].as_str().unwrap().starts_with("urn:lookalike:"), "{problem}");
        for field in ["title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        problem
    }
}

/// A connection to the server, over which one request may follow another.
pub struct Connection {
    pub stream: BufReader<TcpStream>,
}

/// How an answer is delimited.
enum Length {
    Bytes(usize),
    Chunked,
    ToTheEnd,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// A request and its answer.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        if !body.is_empty() || method == "POST" {
            all.push(("Content-Length", &length));
        }
        let mut bytes = head(method, path, &all).into_bytes();
        bytes.extend_from_slice(body);
        // A server that does not want all of it says why.
        let _ = self.send(&bytes);
        self.answer_to(method)
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a part of a chunked body.
    pub fn send_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.send(&chunk)
    }

    /// Another hand on the same connection, to write while this one reads.
    pub fn writer(&self) -> TcpStream {
        self.stream.get_ref().try_clone().unwrap()
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        self.answer_to("GET")
    }

    fn answer_to(&mut self, method: &str) -> io::Result<Answer> {
        let mut answer = self.answer_head()?;
        answer.body = match answer.length() {
            _ if method == "HEAD" => Vec::new(),
            Length::Bytes(length) => {
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body)?;
                body
            }
            Length::Chunked => {
                let mut body = Vec::new();
                while let Some(chunk) = self.chunk()? {
                    body.extend_from_slice(&chunk);
                }
                body
            }
            Length::ToTheEnd => {
                let mut body = Vec::new();
                self.stream.read_to_end(&mut body)?;
                body
            }
        };
        Ok(answer)
    }

    /// The head of an answer; `100 Continue` is not one.
    pub fn answer_head(&mut self) -> io::Result<Answer> {
        loop {
            let answer = self.any_head()?;
            if answer.status >= 200 {
                return Ok(answer);
            }
        }
    }

    /// The next head, whatever it is.
    pub fn any_head(&mut self) -> io::Result<Answer> {
        let first = self.line()?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no answer: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }

    /// The next chunk of a chunked answer; none at its end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk)?;
        chunk.truncate(length);
        Ok((length > 0).then_some(chunk))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Whether the server closes the connection, now or in this time, whatever it says before.
    pub fn closes_within(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).unwrap();
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

impl Answer {
    fn length(&self) -> Length {
        if self.header("transfer-encoding") == Some("chunked") {
            return Length::Chunked;
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        length.map_or(Length::ToTheEnd, Length::Bytes)
    }
}

/// The head of a request.
pub fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n"
}

/// An id as it is written in a path.
pub fn escape(id: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    id.bytes().map(byte).collect()
}

/// `lookalike serve`, until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a collection of a place, at a free port.
    pub fn start(place: &Place, flags: &str) -> Self {
        Self::start_with(place, flags, &[])
    }

    /// The same, with variables of the environment.
    pub fn start_with(place: &Place, flags: &str, variables: &[(&str, &str)]) -> Self {
        Self::of(command(place, flags, variables))
    }

    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (found, address) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let reading = thread::spawn({
            let log = log.clone();
            move || {
                for line in lines.map_while(Result::ok) {
                    *log.lock().unwrap() += &format!("{line}\n");
                    // Whoever waits for the address finds the line in the log.
                    if let Some((_, rest)) = line.split_once(", at http://") {
                        let _ = found.send(rest.trim_end_matches('/').parse::<SocketAddr>());
                    }
                }
            }
        });
        let Ok(Ok(mut address)) = address.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            panic!("it does not start: {}", log.lock().unwrap());
        };
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Server { child, address, log, reading: Some(reading) }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    /// A request over a connection of its own.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let answer = self.connect().request(method, path, headers, body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}\n{}", self.log()))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    #[track_caller]
    pub fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], b"")
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_as(path, JSON, body.to_string())
    }

    #[track_caller]
    pub fn post_as(&self, path: &str, media: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask("POST", path, &[("Content-Type", media)], body.as_ref())
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has had so far, in MB; none where the system does not tell.
    pub fn most_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and does not wait.
    pub fn tell_to_end(&self) {
        let status = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits until it has ended; its exit code and all that it said.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        self.reading.take().unwrap().join().unwrap();
        (code, self.log())
    }

    /// Ends it in good order.
    pub fn terminate(self) -> (Option<i32>, String) {
        self.tell_to_end();
        self.ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `lookalike serve` of a place, which knows no tokens but those it is given.
pub fn command(place: &Place, flags: &str, variables: &[(&str, &str)]) -> Command {
    let listen = if flags.contains("--listen") { "" } else { "--listen 127.0.0.1:0" };
    let mut command = place.command(&format!("serve {flags} {listen}"));
    command.env_remove("LOOKALIKE_TOKEN").env_remove("LOOKALIKE_READ_TOKEN");
    command.envs(variables.iter().copied());
    command
}

/// A place in PostgreSQL of its own, as flags of `create`; a test that needs it is skipped where there is none.
pub fn postgres(name: &str) -> Option<String> {
    let Ok(url) = env::var("LOOKALIKE_POSTGRES") else {
        eprintln!("skipped: LOOKALIKE_POSTGRES does not say where a server is");
        return None;
    };
    Some(format!("--store {url} --schema serving_{name}_{}", std::process::id()))
}
