//! Messages between the profiler's processes.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_profiler::wire::{SentPiece, ToManager, ToWriter, decode, encode};

#[test]
fn wire() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn wire_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("wire"))
        .for_each(|bytes| read(bytes));
}

/// Decodes a packet at both ends. A decoded message takes no more bytes when it is encoded, and decodes to the
/// same message.
fn read(packet: &[u8]) {
    if let Some(message) = decode::<ToManager>(packet) {
        let sent = encode(&message).expect("it came from bytes");
        assert!(sent.len() <= packet.len());
        let again = decode::<ToManager>(&sent).expect("it is a message");
        assert_eq!(format!("{again:?}"), format!("{message:?}"));
    }
    if let Some(message) = decode::<ToWriter<SentPiece<'_>>>(packet) {
        let sent = encode(&message).expect("it came from bytes");
        assert!(sent.len() <= packet.len());
        let again = decode::<ToWriter<SentPiece<'_>>>(&sent).expect("it is a message");
        assert_eq!(format!("{again:?}"), format!("{message:?}"));
    }
}
