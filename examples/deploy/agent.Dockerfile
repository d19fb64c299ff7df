# For the folder of your agent, whose package.json names parley-agent. Copy it there as Dockerfile, and beside it a
# .dockerignore with three lines: node_modules, .env, .parley. Then: docker build -t my-agent .
FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /agent
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY . .
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# In this form node itself gets SIGTERM. The time to stop must be above PARLEY_DRAIN_SECONDS: --stop-timeout 45.
CMD ["node", "node_modules/parley-agent/dist/cli.js", "start"]
