//! `unfuse export --push`, to a server of this test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A request as the server got it.
struct Request {
    /// Method, path and version.
    first: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

/// Answers every request with the same response, until the test ends.
fn server(response: &'static str) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (requests, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let request = answer(&mut stream.expect("a connection"), response);
            if requests.send(request).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}"), received)
}

fn answer(stream: &mut TcpStream, response: &str) -> Request {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    };
    let first = line();
    let headers: Vec<String> =
        std::iter::from_fn(|| Some(line()).filter(|line| !line.is_empty())).collect();
    let value = |name: &str| {
        let mut headers = headers.iter().filter_map(|header| header.split_once(": "));
        headers
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    if value("Expect").is_some() {
        stream
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .expect("written");
    }
    let length = value("Content-Length")
        .expect("a length")
        .parse()
        .expect("a number");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    // The client may not read all of it.
    let _ = stream.write_all(response.as_bytes());
    Request {
        first,
        headers,
        body,
    }
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const REFUSED: &str =
    "HTTP/1.1 415 No\r\nContent-Length: 18\r\nConnection: close\r\n\r\nnot \x1b[31mthis type";

/// An answer that does not say its length.
static ENDLESS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}",
        "x".repeat(1 << 20)
    )
});

fn export(arguments: &[&str]) -> Output {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/canonical");
    Command::new(env!("CARGO_BIN_EXE_unfuse"))
        .args(["export", fixture, "--format"])
        .args(arguments)
        .output()
        .expect("unfuse runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The file of headers is in a directory that ends with the test.
fn headers(dir: &Path) -> String {
    let file = dir.join("headers");
    fs::write(&file, "# of the team\nAuthorization: Bearer secret\n").expect("written");
    file.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_server_gets_what_a_file_would() {
    let dir = tempfile::tempdir().expect("a directory");
    let headers = headers(dir.path());
    for (format, of_type) in [
        ("otlp", "application/x-protobuf"),
        ("prometheus", "text/plain"),
        ("folded", "text/plain"),
    ] {
        let (address, requests) = server(TAKEN);
        let url = format!("{address}/v1/profiles?token=secret");
        let output = export(&[format, "--push", &url, "--headers", &headers]);
        let told = said(&output);
        assert!(output.status.success(), "{told}");
        let request = requests.recv().expect("a request");
        assert_eq!(request.first, "POST /v1/profiles?token=secret HTTP/1.1");
        for header in [
            format!("Content-Type: {of_type}"),
            "Authorization: Bearer secret".to_owned(),
        ] {
            assert!(
                request.headers.contains(&header),
                "{header}: {:?}",
                request.headers
            );
        }
        assert!(request.body == export(&[format]).stdout, "{format}");
        let sent = format!(
            "unfuse: sent {} bytes to {address}/v1/profiles\n",
            request.body.len()
        );
        assert_eq!(told, sent);
        assert_eq!(output.stdout, b"");
    }
}

#[test]
fn pyroscope_gets_a_form_and_the_time_of_the_profile() {
    let (address, requests) = server(TAKEN);
    let output = export(&[
        "pprof",
        "--push",
        &format!("{address}/ingest?name=job{{a=b}}"),
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let request = requests.recv().expect("a request");
    let (path, times) = request.first.split_once("&from=").expect("a time");
    assert_eq!(path, "POST /ingest?name=job{a=b}&format=pprof");
    let times = times.trim_end_matches(" HTTP/1.1").replace("&until=", " ");
    let times: Vec<u64> = times
        .split(' ')
        .map(|time| time.parse().expect("a time"))
        .collect();
    // The fixture was recorded on a day of 2026.
    assert!(
        times[0] < times[1] && (1_767_225_600..1_798_761_600).contains(&times[0]),
        "{times:?}"
    );
    let profile = export(&["pprof"]).stdout;
    assert!(
        request
            .body
            .windows(profile.len())
            .any(|part| part == profile)
    );
    let form = String::from_utf8_lossy(&request.body);
    assert!(form.contains("name=\"profile\""), "a form");
}

#[test]
fn a_profile_that_has_ended_is_sent_once() {
    let (address, requests) = server(TAKEN);
    let output = export(&["folded", "--push", &address, "--every", "1s"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(requests.recv().expect("a request").body == export(&["folded"]).stdout);
    assert!(requests.try_recv().is_err(), "sent twice");
}

#[test]
fn what_is_not_sent_is_an_error() {
    let (refuses, _requests) = server(REFUSED);
    let (endless, _more) = server(&ENDLESS);
    // Nothing listens at a port that was free a moment ago.
    let unused = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let nobody = format!("http://{unused}/a?token=secret");
    for (arguments, expected) in [
        (
            ["otlp", &refuses, ""],
            "refuses the request: status 415 not \\u{1b}[31mthis type",
        ),
        (["otlp", &nobody, ""], "/a: curl: (7)"),
        (["json", &refuses, ""], "no server takes this format"),
        (["otlp", "file:///etc/passwd", ""], "an address such as"),
        (["otlp", &refuses, "/dev/null"], "cannot read /dev/null"),
        (["otlp", "http://me:secret@host/", ""], "--headers"),
        (["otlp", &format!("{refuses}/ingest"), ""], "Pyroscope"),
        (["otlp", &endless, ""], "answers with more than"),
    ] {
        let [format, url, headers] = arguments;
        let mut arguments = vec![format, "--push", url];
        if !headers.is_empty() {
            arguments.extend(["--headers", headers]);
        }
        let output = export(&arguments);
        let told = said(&output);
        assert!(
            !output.status.success() && told.contains(expected),
            "{told}"
        );
        assert!(!told.contains("secret") && !told.contains('\x1b'), "{told}");
    }
}
