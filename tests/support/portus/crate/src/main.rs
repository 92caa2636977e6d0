// An agent that uses portus as its users do: one packet more per report, half the window after a loss.
use portus::ipc::Ipc;
use portus::lang::Scope;
use portus::{CongAlg, Datapath, DatapathInfo, DatapathTrait, Flow, Report};
use std::collections::HashMap;

const PROGRAM: &str = "
    (def (Report
        (volatile acked 0)
        (volatile lost 0)
    ))
    (when true
        (:= Report.acked (+ Report.acked Ack.bytes_acked))
        (:= Report.lost (+ Report.lost Ack.lost_pkts_sample))
        (fallthrough)
    )
    (when (|| Flow.was_timeout (> Ack.lost_pkts_sample 0))
        (:= Micros 0)
        (report)
    )
    (when (> Micros Flow.rtt_sample_us)
        (:= Micros 0)
        (report)
    )
";

struct Aimd;

struct AimdFlow<T: Ipc> {
    control: Datapath<T>,
    scope: Scope,
    cwnd: u32,
    mss: u32,
    hold: u32,
}

impl<T: Ipc> CongAlg<T> for Aimd {
    type Flow = AimdFlow<T>;

    fn name() -> &'static str {
        "aimd"
    }

    fn datapath_programs(&self) -> HashMap<&'static str, String> {
        HashMap::from([("aimd", PROGRAM.to_owned())])
    }

    fn new_flow(&self, mut control: Datapath<T>, info: DatapathInfo) -> Self::Flow {
        let cwnd = 10 * info.mss;
        let scope = control.set_program("aimd", Some(&[("Cwnd", cwnd)])).unwrap();
        AimdFlow { control, scope, cwnd, mss: info.mss, hold: 0 }
    }
}

impl<T: Ipc> Flow for AimdFlow<T> {
    fn on_report(&mut self, _sock_id: u32, report: Report) {
        let lost = report.get_field("Report.lost", &self.scope).unwrap_or(0);
        if self.hold > 0 {
            self.hold -= 1;
        } else if lost > 0 {
            self.cwnd = std::cmp::max(self.cwnd / 2, 2 * self.mss);
            self.hold = 3;
        } else {
            self.cwnd += self.mss;
        }
        let _ = self.control.update_field(&self.scope, &[("Cwnd", self.cwnd)]);
    }
}

fn main() {
    let socket = portus::ipc::unix::Socket::<portus::ipc::Blocking>::new("portus").expect("socket");
    let backend = portus::ipc::BackendBuilder { sock: socket };
    portus::RunBuilder::new(backend).default_alg(Aimd).run().expect("run");
}
