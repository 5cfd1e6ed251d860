{{- define "gateway.labels" -}}
app.kubernetes.io/name: evenhand-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "gateway.meta" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels: {{- include "gateway.labels" . | nindent 2 }}
{{- end }}
