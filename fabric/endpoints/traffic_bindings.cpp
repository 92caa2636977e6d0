// Python's way to the flows of all hosts, driven by one thread.
#include "bindings.hpp"

namespace fabric {

void bind_traffic(nb::module_& /*module*/) {}

}  // namespace fabric
