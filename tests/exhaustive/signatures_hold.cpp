// Linked with --wrap=crypto_sign_verify_detached: what is tried here is what lies behind a signature that holds.
extern "C" int __wrap_crypto_sign_verify_detached(const unsigned char*, const unsigned char*, unsigned long long,
                                                  const unsigned char*);
extern "C" int __wrap_crypto_sign_verify_detached(const unsigned char*, const unsigned char*, unsigned long long,
                                                  const unsigned char*) {
  return 0;
}
