# An image with the two static programs. Build the archives first: `cargo xtask dist`, then
#   mkdir IMAGE_FOLDER
#   tar -xzf dist/counterproof-VERSION-x86_64-unknown-linux-musl.tar.gz --strip-components=1 -C IMAGE_FOLDER
#   docker build -t counterproof -f Dockerfile IMAGE_FOLDER
FROM alpine:3 AS files
# The programs contain no root certificates and read those of the system. Temporary files need /tmp.
RUN mkdir -p /files/etc/ssl/certs /files/work \
    && cp /etc/ssl/certs/ca-certificates.crt /files/etc/ssl/certs/ \
    && mkdir -m 1777 /files/tmp

FROM scratch
COPY --from=files /files /
COPY counterproof safe-run /
WORKDIR /work
ENTRYPOINT ["/counterproof"]
