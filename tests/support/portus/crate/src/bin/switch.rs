// An agent with two datapath programs, between which it changes every few reports: 20 packets in one, 30 in the other.
use portus::ipc::Ipc;
use portus::lang::Scope;
use portus::{CongAlg, Datapath, DatapathInfo, DatapathTrait, Flow, Report};
use std::collections::HashMap;

const REPORTS: u32 = 10;

const PROBE: &str = "
    (def (Report (volatile acked 0) (minrtt +infinity)))
    (when true
        (:= Report.acked (+ Report.acked Ack.bytes_acked))
        (:= Report.minrtt (min Report.minrtt Flow.rtt_sample_us))
        (fallthrough)
    )
    (when (> Micros Flow.rtt_sample_us)
        (:= Micros 0)
        (report)
    )
";

// It sets the window itself, to `cap`.
const HOLD: &str = "
    (def (Report (volatile acked 0) (volatile lost 0) (acks 0)) (volatile seen 0) (cap 0))
    (when true
        (:= Report.acked (+ Report.acked Ack.bytes_acked))
        (:= Report.lost (+ Report.lost Ack.lost_pkts_sample))
        (:= Report.acks (+ Report.acks 1))
        (fallthrough)
    )
    (when (== seen 0)
        (:= seen 1)
    )
    (when (> Micros Flow.rtt_sample_us)
        (:= Cwnd cap)
        (:= Micros 0)
        (report)
    )
";

struct Switch;

struct SwitchFlow<T: Ipc> {
    control: Datapath<T>,
    scope: Scope,
    holds: bool,
    mss: u32,
    left: u32,
}

impl<T: Ipc> CongAlg<T> for Switch {
    type Flow = SwitchFlow<T>;

    fn name() -> &'static str {
        "switch"
    }

    fn datapath_programs(&self) -> HashMap<&'static str, String> {
        HashMap::from([("probe", PROBE.to_owned()), ("hold", HOLD.to_owned())])
    }

    fn new_flow(&self, mut control: Datapath<T>, info: DatapathInfo) -> Self::Flow {
        let scope = control.set_program("probe", Some(&[("Cwnd", 20 * info.mss)])).unwrap();
        SwitchFlow { control, scope, holds: false, mss: info.mss, left: REPORTS }
    }
}

impl<T: Ipc> Flow for SwitchFlow<T> {
    fn on_report(&mut self, _sock_id: u32, report: Report) {
        if report.program_uid != self.scope.program_uid {
            return; // it was on its way when the program was changed
        }
        let field = if self.holds { "Report.acks" } else { "Report.minrtt" };
        let value = report.get_field(field, &self.scope).expect("a field of the program");
        assert!(value > 0 && value < 0xffff_ffff, "{} is {}", field, value);
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = REPORTS;
        self.holds = !self.holds;
        self.scope = if self.holds {
            self.control.set_program("hold", Some(&[("cap", 30 * self.mss)])).unwrap()
        } else {
            self.control.set_program("probe", None).unwrap()
        };
        if !self.holds {
            self.control.update_field(&self.scope, &[("Cwnd", 20 * self.mss)]).unwrap();
        }
    }
}

fn main() {
    let socket = portus::ipc::unix::Socket::<portus::ipc::Blocking>::new("portus").expect("socket");
    let backend = portus::ipc::BackendBuilder { sock: socket };
    portus::RunBuilder::new(backend).default_alg(Switch).run().expect("run");
}
