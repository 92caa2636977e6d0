#pragma once

namespace fabric {

// Identifies the sources that this core was built from. Defined in a file of its own, which alone is compiled anew
// when the digest changes.
const char* sources_digest();

}  // namespace fabric
