//! Strangers at the gateway's sockets, and recordings from anybody.

use proptest::prelude::*;

use crate::strangers;

/// A number in a recording, often a great one.
fn number() -> impl Strategy<Value = Vec<u8>> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| {
        let mut value = value >> shift;
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    })
}

proptest! {
    #[test]
    fn any_line_at_the_control_socket(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        strangers::check_control(&bytes);
    }

    #[test]
    fn any_request_for_metrics(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        begin in prop::sample::select(vec!["", "GET /metrics", "GET /metrics HTTP/1.1\r\n", "\r\n\r\n"]),
    ) {
        let mut request = begin.as_bytes().to_vec();
        request.extend(&bytes);
        strangers::check_metrics(&request);
        request.extend(b"\r\n\r\n");
        strangers::check_metrics(&request);
    }

    /// Arrivals with times and lengths of any size, and then anything.
    #[test]
    fn any_recording(
        discipline in 0u8..40,
        arrivals in prop::collection::vec((number(), number(), any::<u32>()), 0..50),
        rest in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut bytes = vec![discipline];
        for (time, head, flow) in arrivals {
            bytes.extend(time);
            bytes.extend(head);
            bytes.extend(flow.to_le_bytes());
        }
        bytes.extend(rest);
        strangers::check_recording(&bytes);
    }
}
