namespace fabric {

const char* sources_digest() { return FABRIC_SOURCES; }

}  // namespace fabric
