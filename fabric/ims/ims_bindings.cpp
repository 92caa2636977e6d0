#include <nanobind/stl/string_view.h>

#include <string_view>

#include "bindings.hpp"
#include "ims/ims.hpp"

namespace fabric {

namespace {

ims::Role role_of(std::string_view name) {
  if (name == "pcscf") return ims::Role::pcscf;
  if (name == "scscf") return ims::Role::scscf;
  throw std::invalid_argument("an IMS has the roles pcscf and scscf");
}

nb::list servers_of(ims::Ims& self) {
  nb::list out;
  for (auto& server : self.servers()) {
    const auto& counted = server.counters(self.now());
    nb::dict row;
    row["role"] = server.role() == ims::Role::pcscf ? "pcscf" : "scscf";
    row["active"] = server.active;
    row["idle"] = server.idle();
    row["dialogs"] = server.dialogs;
    row["waiting"] = server.waiting();
    row["fill"] = server.fill();
    row["longest"] = counted.longest;
    row["arrived"] = counted.arrived;
    row["dropped"] = counted.dropped;
    row["served"] = counted.served;
    row["lookups"] = counted.lookups;
    row["busy_ps"] = counted.busy;
    row["queued_ps"] = counted.queued;
    out.append(row);
  }
  return out;
}

nb::dict counts_of(const ims::Ims& self) {
  const auto& counts = self.counts();
  nb::dict out;
  out["offered"] = counts.offered;
  out["completed"] = counts.completed;
  out["failed"] = counts.failed;
  out["registrations"] = counts.registrations;
  out["registered"] = counts.registered;
  out["registrations_failed"] = counts.registrations_failed;
  out["retransmissions"] = counts.retransmissions;
  out["events"] = counts.events;
  return out;
}

}  // namespace

void bind_ims(nb::module_& module) {
  nb::class_<ims::Ims>(module, "Ims")
      .def(
          "__init__",
          [](ims::Ims* self, Time pcscf_ps, Time scscf_ps, Time lookup_ps, std::uint32_t workers, std::size_t buffer,
             Time hop_ps, Time hold_ps, Time patience_ps, bool poisson, std::uint32_t seed) {
            new (self) ims::Ims({.pcscf_message = pcscf_ps,
                                 .scscf_message = scscf_ps,
                                 .lookup = lookup_ps,
                                 .workers = workers,
                                 .buffer = buffer,
                                 .hop = hop_ps,
                                 .hold = hold_ps,
                                 .patience = patience_ps,
                                 .poisson = poisson,
                                 .seed = seed});
          },
          nb::kw_only(), "pcscf_ps"_a, "scscf_ps"_a, "lookup_ps"_a, "workers"_a, "buffer"_a, "hop_ps"_a, "hold_ps"_a,
          "patience_ps"_a, "poisson"_a, "seed"_a)
      .def("add", [](ims::Ims& self, std::string_view role) { return self.add(role_of(role)); }, "role"_a)
      .def("drain", &ims::Ims::drain, "server"_a)
      .def("activate", &ims::Ims::activate, "server"_a)
      .def("set_rates", &ims::Ims::set_rates, "calls_per_s"_a, "registrations_per_s"_a)
      .def("advance", &ims::Ims::advance, "until_ps"_a)
      .def("servers", &servers_of, nb::sig("def servers(self) -> list[fabric.readings.ImsServer]"))
      .def("counts", &counts_of, nb::sig("def counts(self) -> fabric.readings.ImsCounts"))
      .def("take_setups", [](ims::Ims& self) {
        const auto setups = self.take_setups();
        return std::pair(column_of(setups, &ims::Setup::when), column_of(setups, &ims::Setup::took));
      });
}

}  // namespace fabric
