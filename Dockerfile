# An image with nothing but the two static programs. Build the archives first: `cargo xtask dist`, then
#   tar -xzf dist/counterproof-VERSION-x86_64-unknown-linux-musl.tar.gz --strip-components=1 -C IMAGE_FOLDER
#   docker build -f Dockerfile IMAGE_FOLDER
FROM scratch
COPY counterproof safe-run /
WORKDIR /work
ENTRYPOINT ["/counterproof"]
