# Serves a run: docker run -p 8400:8400 -v ./runs/mine:/run -v ./tokens.txt:/tokens.txt:ro IMAGE
# The run folder is written to (facts, decisions, jobs): it must belong to user 10001, or say where
# else: `... IMAGE serve /run --store /data/live.sqlite --host 0.0.0.0 --token-file /tokens.txt`.
FROM python:3.11.11-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
# torch without CUDA: the wheel of PyPI brings gigabytes that a CPU has no use for.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check \
        --index-url https://download.pytorch.org/whl/cpu -c constraints.txt torch \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check \
        -c constraints.txt '.[server,frames]'

FROM python:3.11.11-slim-bookworm
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin knowformer
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
USER knowformer
WORKDIR /home/knowformer
EXPOSE 8400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8400/readyz', timeout=2)"]
ENTRYPOINT ["knowformer"]
CMD ["serve", "/run", "--host", "0.0.0.0", "--token-file", "/tokens.txt", "--log-requests"]
